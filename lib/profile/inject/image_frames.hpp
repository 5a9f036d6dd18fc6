// SPDX-License-Identifier: MIT
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

/// Whether all these call frame instructions are known, complete, and independent of the address of
/// the code. Source: DWARF 5, 6.4.2 and 7.24, and gcc's vendor opcodes. O(bytes).
bool can_be_moved(std::string_view instructions) noexcept;

/// A CIE: the common part of the FDEs that refer to it. Borrowed from the frames.
struct FrameCie {
  std::uint8_t version = 1;
  std::uint8_t encoding = 0;  ///< DW_EH_PE_… of addresses in its FDEs
  bool has_size = false;      ///< its FDEs state the length of their augmentation
  bool is_signal_frame = false;
  bool uses_b_key = false;        ///< aarch64: return addresses are signed with key B
  std::string_view factors;       ///< alignment of code and data, and the return address register
  std::string_view instructions;  ///< all known, none with an address
};

/// An FDE: how to unwind from the code at `range`.
struct FrameFde {
  AddressRange range;
  const FrameCie* cie = nullptr;  ///< valid during the visit
  std::uint64_t cie_offset = 0;   ///< offset of its CIE in the frames
  std::string_view instructions;  ///< like those of a CIE
};

/// Calls `visit` for each FDE of an .eh_frame at `address`. Returns how many are unusable: damaged,
/// of a kind that no JIT writes, or with such a CIE. Stops at a terminator or an invalid length.
/// O(bytes).
/// Sources: Linux Standard Base 5.0, "Exception Frames"; DWARF 5, 6.4.
std::uint64_t for_each_fde(std::string_view frames, Address address, const Target& target,
                           const std::function<void(const FrameFde&)>& visit);

/// How frames refer to their code.
enum class FrameAddresses {
  absolute,  ///< independent of where .eh_frame is
  relative,  ///< relative to the frame: still valid where the file is mapped in memory
};

/// Joins the frames of many functions into one .eh_frame. Code may be too far apart for 32-bit
/// offsets, so addresses have the target's size.
class ImageFrames {
 public:
  ImageFrames(const Target& target, FrameAddresses addresses)
      : out_(target), addresses_(addresses) {}

  /// Adds the frames of a function from its UNWINDING_INFO record. O(bytes + frames · log pieces).
  void add(const ImageCode& code, const ImageFunction& function, std::string_view frames,
           ElfImageCounts& counts) {
    add_moved(code, function, frames, 0, counts);
  }
  /// The same, as if the code were `distance` bytes further on.
  void add_moved(const ImageCode& code, const ImageFunction& function, std::string_view frames,
                 std::uint64_t distance, ElfImageCounts& counts);

  /// Adds the terminator if there are frames.
  void finish();
  std::string_view bytes() const noexcept { return out_.view(); }

  /// Call once, for relative frames: they will be at `at`, and the code `shift` bytes after the
  /// place stated before.
  void place(Address at, std::uint64_t shift);
  bool is_relative() const noexcept { return addresses_ == FrameAddresses::relative; }
  /// The size of the table.
  std::size_t table_size() const noexcept;
  /// .eh_frame_hdr at `at`, for frames with final places: a table for binary search of the frames
  /// whose code is within 2 GiB; empty if there are none. O(n log n).
  TargetBytes table(Address at) const;

 private:
  std::size_t cie(const FrameCie& cie);
  void fde(std::size_t cie, const AddressRange& range, std::string_view instructions);
  void end_entry(std::size_t start);

  /// The place of an FDE, and the begin of its code.
  struct Place {
    std::size_t fde;
    Address code;
  };

  TargetBytes out_;
  FrameAddresses addresses_;
  Address at_ = 0;
  std::vector<Place> places_;
  std::unordered_map<std::string, std::size_t> cies_;  // by content; values are offsets in out_
};

/// The address of code in memory minus its place in the file.
std::uint64_t distance_of(const ImageFunction& function) noexcept;
/// Whether one frame table, below all code as it was loaded, reaches all code in memory, including
/// moved code. perf takes the lowest mapping of the file for its first segment: with code below the
/// table, it would search for the table at a wrong address and give up.
bool is_within_reach(const ImageCode& code) noexcept;
/// The distance of the code with the lowest address in memory.
std::uint64_t main_distance(const ImageCode& code);

}  // namespace perfmap
