// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "perfmap/profile/debug_index.hpp"

namespace {

using namespace perfmap;

constexpr std::uint64_t kMaxBytes = 1 << 16;
constexpr std::size_t kMaxFrames = 256;
constexpr Address kText = 0x10000;  // used by the saved inputs

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const DebugIndex& index, Address vaddr, const std::vector<SourceFrame>& frames) {
  require(frames.size() <= kMaxFrames);
  const auto line = index.find_line(vaddr);
  if (!line) return;
  require(!frames.empty());
  require(*line == SourceLine{frames[0].file, frames[0].line, frames[0].column});
}

}  // namespace

/// For any file, the results of its index are bounded, the same for a single address as for many on
/// two threads, and consistent with find_line(), which ignores functions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file(reinterpret_cast<const char*>(data), size);
  DebugOptions options;
  options.max_bytes = kMaxBytes;
  options.max_section_bytes = 1 << 20;
  options.open_split = [&](const std::string& path) -> Result<Input> {
    return Input::from_text(file, path);  // the file serves as its own split unit
  };
  const auto index = DebugIndex::from_input(Input::from_text(file, "file"), options);
  if (!index) return 0;
  std::vector<Address> vaddrs;
  for (Address vaddr = kText; vaddr < kText + 0x400; vaddr += 3) vaddrs.push_back(vaddr);
  const auto all = index->find_all(vaddrs, 2);
  for (std::size_t i = 0; i < vaddrs.size(); i += 7) {
    require(index->find(vaddrs[i]) == all[i]);
    check(*index, vaddrs[i], all[i]);
  }
  // The index may hold one unit index beyond the budget, and its columns are only estimated.
  require(index->stats().bytes <= 4 * kMaxBytes + 64 * size);
  return 0;
}
