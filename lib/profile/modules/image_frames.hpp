#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "modules/frame_reader.hpp"
#include "modules/image_code.hpp"
#include "modules/target_bytes.hpp"

namespace perfmap {

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
