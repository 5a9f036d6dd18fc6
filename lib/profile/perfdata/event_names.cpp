#include "perfdata/event_names.hpp"

#include <array>
#include <cstdio>
#include <string_view>

namespace perfmap {
namespace {

constexpr std::array<std::string_view, 10> kHardware = {"cycles",
                                                        "instructions",
                                                        "cache-references",
                                                        "cache-misses",
                                                        "branches",
                                                        "branch-misses",
                                                        "bus-cycles",
                                                        "stalled-cycles-frontend",
                                                        "stalled-cycles-backend",
                                                        "ref-cycles"};
constexpr std::array<std::string_view, 12> kSoftware = {
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
constexpr std::array<std::string_view, 7> kCaches = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                                     "iTLB",      "branch",    "node"};
constexpr std::array<std::string_view, 3> kOperations = {"load", "store", "prefetch"};
constexpr std::array<std::string_view, 3> kManyOperations = {"loads", "stores", "prefetches"};

std::string with_number(const char* format, std::uint64_t number) {
  char text[40];
  std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(number));
  return text;
}

template <std::size_t n>
std::string one_of(const std::array<std::string_view, n>& names, std::uint64_t number,
                   const char* otherwise) {
  return number < n ? std::string(names[number]) : with_number(otherwise, number);
}

/// Bytes 0, 1 and 2 of the number: which cache, what was done, whether it missed.
std::string cache_name(std::uint64_t config) {
  const std::uint64_t cache = config & 0xff;
  const std::uint64_t operation = config >> 8 & 0xff;
  const std::uint64_t missed = config >> 16 & 0xff;
  if (cache >= kCaches.size() || operation >= kOperations.size() || missed > 1) {
    return with_number("cache 0x%llx", config);
  }
  std::string name = std::string(kCaches[cache]) + '-';
  if (missed == 1) return name.append(kOperations[operation]) + "-misses";
  return name.append(kManyOperations[operation]);
}

std::string plain_name(const RecordedEvent& event, std::uint64_t breakpoint) {
  switch (event.type) {
    case 0: return one_of(kHardware, event.config & UINT32_MAX, "hardware 0x%llx");
    case 1: return one_of(kSoftware, event.config, "software 0x%llx");
    case 2: return with_number("tracepoint %llu", event.config);
    case 3: return cache_name(event.config);
    case 4: return with_number("raw 0x%llx", event.config);
    case 5: return with_number("mem:0x%llx", breakpoint);
    default:
      return "type " + std::to_string(event.type) + with_number(", config 0x%llx", event.config);
  }
}

}  // namespace

std::string made_up_name(const Attributes& attributes) {
  std::string letters;
  if (attributes.excludes_kernel || attributes.excludes_user || attributes.excludes_hypervisor) {
    if (!attributes.excludes_kernel) letters += 'k';
    if (!attributes.excludes_user) letters += 'u';
    if (!attributes.excludes_hypervisor) letters += 'h';
  }
  letters.append(attributes.precise, 'p');
  std::string name = plain_name(attributes.event, attributes.breakpoint);
  return letters.empty() ? name : name + ':' + letters;
}

}  // namespace perfmap
