#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "elf/target.hpp"
#include "inject/image_code.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Whether these call frame instructions are all known and whole, and mean the same wherever the
/// code lies. Source: DWARF 5, 6.4.2 and 7.24, and the vendors' opcodes of gcc. O(bytes).
bool can_be_moved(std::string_view instructions) noexcept;

/// A CIE: what the FDEs that refer to it have in common. Borrowed from the frames.
struct FrameCie {
  std::uint8_t version = 1;
  std::uint8_t encoding = 0;  ///< DW_EH_PE_… of addresses in its FDEs
  bool has_size = false;      ///< its FDEs say how long their augmentation is
  bool is_signal_frame = false;
  bool uses_b_key = false;        ///< aarch64: return addresses are signed with key B
  std::string_view factors;       ///< of code and data, and the register of the return address
  std::string_view instructions;  ///< all of a known kind, and none with an address in it
};

/// An FDE: how to unwind from the code at `range`.
struct FrameFde {
  AddressRange range;
  const FrameCie* cie = nullptr;  ///< lives during the visit
  std::uint64_t cie_offset = 0;   ///< of its CIE in the frames
  std::string_view instructions;  ///< as for a CIE
};

/// Calls `visit` for each FDE of an .eh_frame that lies at `address`. Answers how many could not be
/// used: damaged, of a kind that nobody writes for a JIT, or with such a CIE. Reading ends at a
/// terminator or where a length makes no sense. O(bytes).
/// Sources: Linux Standard Base 5.0, "Exception Frames"; DWARF 5, 6.4.
std::uint64_t for_each_fde(std::string_view frames, Address address, const Target& target,
                           const std::function<void(const FrameFde&)>& visit);

/// How frames name the code that they are about.
enum class FrameAddresses {
  absolute,  ///< it does not matter where .eh_frame lies
  relative,  ///< to the frame: where the file is mapped, they hold for whoever reads memory
};

/// Makes one .eh_frame of those of many functions. Code may be farther apart than addresses of 32
/// bits reach, so they have as many bits as the target's.
class ImageFrames {
 public:
  ImageFrames(const Target& target, FrameAddresses addresses)
      : out_(target), addresses_(addresses) {}

  /// Takes in the frames of a function, as its UNWINDING_INFO record has them. O(bytes + frames ·
  /// log pieces).
  void add(const ImageCode& code, const ImageFunction& function, std::string_view frames,
           ElfImageCounts& counts) {
    add_moved(code, function, frames, 0, counts);
  }
  /// The same, as if the code lay `distance` behind where it does.
  void add_moved(const ImageCode& code, const ImageFunction& function, std::string_view frames,
                 std::uint64_t distance, ElfImageCounts& counts);

  /// The terminator, where there are frames at all.
  void finish();
  std::string_view bytes() const noexcept { return out_.view(); }

  /// Once, of relative frames: they will lie at `at`, and the code `shift` behind where it was said
  /// to be.
  void place(Address at, std::uint64_t shift);
  bool is_relative() const noexcept { return addresses_ == FrameAddresses::relative; }
  /// How long the table is.
  std::size_t table_size() const noexcept;
  /// .eh_frame_hdr at `at`, of frames that have their place: a table for binary search, of those
  /// whose code is within 2 GiB of it; an empty one where there are none. O(n log n).
  TargetBytes table(Address at) const;

 private:
  std::size_t cie(const FrameCie& cie);
  void fde(std::size_t cie, const AddressRange& range, std::string_view instructions);
  void end_entry(std::size_t start);

  /// Where an FDE is, and the beginning of its code.
  struct Place {
    std::size_t fde;
    Address code;
  };

  TargetBytes out_;
  FrameAddresses addresses_;
  Address at_ = 0;
  std::vector<Place> places_;
  std::unordered_map<std::string, std::size_t> cies_;  // by content; where they are in out_
};

/// How far in front of its place in memory code lies in the file.
std::uint64_t distance_of(const ImageFunction& function) noexcept;
/// Whether one table of frames, below all code as it was loaded, reaches all code in memory, moved
/// code too. perf takes the lowest mapping of the file for its first segment: with code below the
/// table it would look for the table at a wrong place, and give up.
bool is_within_reach(const ImageCode& code) noexcept;
/// The distance of the code that is the lowest in memory.
std::uint64_t main_distance(const ImageCode& code);

}  // namespace perfmap
