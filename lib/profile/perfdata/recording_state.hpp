#pragma once

#include <cstdint>

#include "perfdata/description.hpp"
#include "perfdata/file_header.hpp"
#include "perfmap/recording.hpp"

namespace perfmap {

struct Recording::State {
  Input input;
  Description description;
  RecordBytes records;
  /// Records before this offset have been taken into the description.
  std::uint64_t described_until = 0;
};

}  // namespace perfmap
