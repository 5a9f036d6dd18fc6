#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "modules/frame_reader.hpp"
#include "modules/image_code.hpp"
#include "modules/target_bytes.hpp"

namespace perfmap {

/// Makes one .eh_frame of those of many functions. Addresses become absolute, so that it does not
/// matter where the section lies: code may be farther apart than relative ones of 32 bits reach.
/// (That is also why there is no .eh_frame_hdr.)
class ImageFrames {
 public:
  explicit ImageFrames(const Target& target) : out_(target) {}

  /// Takes in the frames of a function, as its UNWINDING_INFO record has them. O(bytes + frames ·
  /// log pieces).
  void add(const ImageCode& code, const ImageFunction& function, std::string_view frames,
           ElfImageCounts& counts);

  /// The terminator, where there are frames at all.
  void finish();
  std::string_view bytes() const noexcept { return out_.view(); }

 private:
  std::size_t cie(const FrameCie& cie);
  void fde(std::size_t cie, const AddressRange& range, std::string_view instructions);
  void end_entry(std::size_t start);

  TargetBytes out_;
  std::unordered_map<std::string, std::size_t> cies_;  // by content; where they are in out_
};

}  // namespace perfmap
