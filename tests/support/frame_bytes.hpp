#pragma once

#include <cstdint>
#include <string>

#include "support/jitdump_bytes.hpp"

namespace perfmap::test {

/// One function's .eh_frame and .eh_frame_hdr, right unless something is off.
struct Frame {
  std::uint32_t code_size = 0;
  std::uint32_t begin_off = 0;  ///< how far beside the code the FDE begins
  std::uint32_t cie_off = 0;    ///< how far beside the CIE the FDE looks for it
  std::uint32_t table_encoding = 0x3b;
};

/// A CIE of 24 bytes ("zR", sdata4 relative to itself), an FDE of 20, a terminator, and the header
/// of 20 bytes, as CPython lays them out: behind the code, at a multiple of 8.
inline std::string frame_of(const Frame& frame) {
  using std::string_literals::operator""s;
  constexpr std::uint32_t kFrameSize = 24 + 20 + 4;
  const std::uint32_t code = (frame.code_size + 7) / 8 * 8;
  DumpBytes bytes;
  bytes.u32(20).u32(0).raw("\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0\0"s);
  bytes.u32(16).u32(28 + frame.cie_off).u32(0u - (code + 32) + frame.begin_off);
  bytes.u32(frame.code_size).raw("\0\0\0\0"s).u32(0);
  bytes.raw("\1\x1b\3"s + static_cast<char>(frame.table_encoding));
  return bytes.u32(0u - (kFrameSize + 4)).u32(1).u32(0u - (code + kFrameSize)).u32(0u - 24).text();
}

}  // namespace perfmap::test
