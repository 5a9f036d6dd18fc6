#include <cstdlib>

#include "perfmap/loop_profile.hpp"

namespace {

using namespace perfmap;

/// Reads the log in pieces of whole lines of about `piece` bytes.
LoopProfile profile_of(std::string_view log, std::size_t piece) {
  LoopProfile profile({.keep_code_bytes = true});
  while (!log.empty()) {
    const std::size_t newline = piece < log.size() ? log.find('\n', piece) : log.size();
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

/// Both accounts of the time are complete, whatever the log holds.
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

}  // namespace

/// However a log is cut into pieces, it says the same, and its times add up.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  const LoopProfile whole = profile_of(log, log.size());
  const LoopProfile parts = profile_of(log, 16);
  check_sums(whole);
  check_loops(whole, size);
  require(whole.ticks() == parts.ticks() && whole.outside() == parts.outside());
  require(whole.rest() == parts.rest() && whole.times().size() == parts.times().size());
  require(whole.problems().total() == parts.problems().total());
  for (std::size_t i = 0; i < whole.times().size(); ++i) {
    require(whole.times()[i].ticks == parts.times()[i].ticks);
    require(whole.loops().all()[i].name == parts.loops().all()[i].name);
  }
  return 0;
}
