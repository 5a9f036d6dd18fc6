// SPDX-License-Identifier: MIT
// Prints the names of addresses in a living process, with inlined functions: symbolize PID
// ADDRESS...

#include <cstdlib>
#include <iostream>
#include <perfmap/profile/process_tracker.hpp>
#include <perfmap/profile/symbolizer.hpp>
#include <string>

namespace {

void print(const perfmap::AddressName& name) {
  for (const perfmap::SourceFrame& frame : name.frames) {
    std::cout << "  " << frame.function << " at " << frame.file << ":" << frame.line << '\n';
  }
  if (!name.has_name()) {
    std::cout << "no name: " << perfmap::to_string(name.why) << '\n';
    return;
  }
  std::cout << name.name << "+" << (name.range ? name.address - name.range->begin : 0) << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  perfmap::ModuleCacheOptions cache_options;
  cache_options.debug_directories = {"/usr/lib/debug"};
  perfmap::ModuleCache cache(std::move(cache_options));  // may be shared by many processes

  perfmap::ProcessTracker::Options options;
  options.open_module = perfmap::open_through(cache);
  perfmap::ProcessTracker tracker(std::move(options));
  const pid_t pid = std::atoi(arguments[1]);
  const auto imported = tracker.import(pid);  // reads its mappings; repeat if they may have changed
  if (!imported || *imported == perfmap::Imported::vanished) {
    std::cerr << (imported ? "no such process" : imported.error().message()) << '\n';
    return 2;
  }
  static_cast<void>(tracker.refresh_jit(pid));  // reads its perf map and its jitdumps, if any

  perfmap::Symbolizer symbolizer(tracker, {perfmap::Symbolizer::Detail::inlines});
  for (int i = 2; i < count; ++i) {
    char* end = arguments[i];
    const perfmap::Address address = std::strtoull(arguments[i], &end, 16);
    if (end == arguments[i] || *end != '\0') {
      std::cerr << "not an address: '" << arguments[i] << "'\n";
      return 2;
    }
    print(symbolizer.find(pid, {address}));
  }
  return 0;
}
