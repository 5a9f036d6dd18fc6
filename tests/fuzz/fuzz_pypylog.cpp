// SPDX-License-Identifier: MIT
#include <cstdlib>

#include "perfmap/pypylog.hpp"

namespace {

using namespace perfmap;

/// Reads the log in chunks of whole lines of about `chunk` bytes.
LoopProfile profile_of(std::string_view log, std::size_t chunk) {
  LoopProfile profile({.keep_code_bytes = true});
  while (!log.empty()) {
    const std::size_t newline = chunk < log.size() ? log.find('\n', chunk) : log.size();
    const std::size_t end = newline < log.size() ? newline + 1 : log.size();
    profile.add(log.substr(0, end));
    log.remove_prefix(end);
  }
  profile.finish();
  return profile;
}

void require(bool holds) {
  if (!holds) std::abort();
}

/// For any log, the ticks of loops and the ticks of categories both add up to the total.
void check_sums(const LoopProfile& profile) {
  std::uint64_t loops = profile.outside();
  for (const LoopProfile::Times& times : profile.times()) loops += times.ticks;
  std::uint64_t categories = profile.rest();
  for (const LoopProfile::Category& category : profile.categories()) categories += category.ticks;
  require(loops == profile.ticks());
  require(categories == profile.ticks());
}

void check_loops(const LoopProfile& profile, std::size_t size) {
  const auto all = profile.loops().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    require(all[i].owner == CompiledLoop::kNone || all[i].owner < all.size());
    require(all[i].loop == CompiledLoop::kNone || all[i].loop < all.size());
    require(all[i].operations.offset <= size);
    require(all[i].operations.size <= size - all[i].operations.offset);
    for (const CompiledLoop::Guard& guard : all[i].guards) {
      require(guard.bridge == CompiledLoop::kNone || guard.bridge < all.size());
    }
  }
  for (const CodeBytes& bytes : profile.loops().code_bytes()) {
    require(bytes.hex.offset <= size && bytes.hex.size <= size - bytes.hex.offset);
  }
}

/// The dump of the loops contains them again. Loops that claim much code take long to dump, so they
/// are dumped without code.
void check_dump(const CompiledLoops& loops, std::string_view log) {
  constexpr std::uint64_t kMaxCode = 1 << 16;
  std::uint64_t claimed = 0;
  for (const CompiledLoop& loop : loops.all()) claimed += loop.code.size;
  Result<JitdumpBytes> bytes = dump_of_loops(
      loops, log, {.conversion = TimeConversion{1, 3, 7}, .bare = claimed > kMaxCode});
  require(bytes.has_value());
  const Jitdump dump(Input::from_text(std::move(bytes->bytes), "dump"));
  Diagnostics problems(1);
  std::size_t loads = 0;
  dump.for_each(problems, [&](const JitRecord& record) {
    const auto load = decode_load(record);
    if (!load) return;
    ++loads;
    require(load->code_index - 1 < loops.all().size());
    const CompiledLoop& loop = loops.all()[load->code_index - 1];
    require(load->range == loop.code && load->name == loop.name.substr(0, loop.name.find('\0')));
  });
  require(problems.total() == 0);
  std::size_t placed = 0;
  for (const CompiledLoop& loop : loops.all()) placed += loop.code.size != 0 ? 1 : 0;
  require(loads == placed);
  require(map_of_loops(loops).has_value());
}

}  // namespace

/// A log gives the same result in any chunks, its times add up, and its dump has its loops.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  const LoopProfile whole = profile_of(log, log.size());
  const LoopProfile parts = profile_of(log, 16);
  check_sums(whole);
  check_loops(whole, size);
  check_dump(whole.loops(), log);
  require(whole.ticks() == parts.ticks() && whole.outside() == parts.outside());
  require(whole.rest() == parts.rest() && whole.times().size() == parts.times().size());
  require(whole.problems().total() == parts.problems().total());
  for (std::size_t i = 0; i < whole.times().size(); ++i) {
    require(whole.times()[i].ticks == parts.times()[i].ticks);
    require(whole.loops().all()[i].name == parts.loops().all()[i].name);
  }
  return 0;
}
