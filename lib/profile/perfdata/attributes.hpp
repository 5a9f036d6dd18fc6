#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/recording.hpp"

namespace perfmap {

/// What perf_event_attr says: the event, and what its name is made of.
struct Attributes {
  RecordedEvent event;  ///< without ids
  std::uint32_t size = 0;
  std::uint64_t breakpoint = 0;
  unsigned precise = 0;
  bool excludes_user = false, excludes_kernel = false, excludes_hypervisor = false;
};

/// How long the first version of perf_event_attr was; no later one is shorter.
inline constexpr std::uint32_t kSmallestAttributes = 64;

/// The perf_event_attr that the bytes begin with; as long as it says itself. Nothing where it does
/// not fit. Fields that it is too short for are 0.
std::optional<Attributes> read_attributes(std::string_view bytes, std::endian order);

}  // namespace perfmap
