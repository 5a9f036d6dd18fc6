// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "support/jitdump_bytes.hpp"

namespace perfmap::test {

/// The .eh_frame and .eh_frame_hdr of one function, correct unless an offset is given.
struct Frame {
  std::uint32_t code_size = 0;
  std::uint32_t begin_off = 0;  ///< distance of the FDE's code address from the code
  std::uint32_t cie_off = 0;    ///< distance of the FDE's CIE pointer from the CIE
  std::uint32_t table_encoding = 0x3b;
};

/// A CIE of 24 bytes ("zR", sdata4 pcrel), an FDE of 20, a terminator, and a header of 20 bytes, in
/// CPython's layout: after the code, at a multiple of 8.
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
