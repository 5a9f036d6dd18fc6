#include "perfmap/doubt.hpp"

#include <array>
#include <bit>

namespace perfmap {
namespace {

struct Kind {
  std::string_view name;
  std::string_view explanation;
};

constexpr std::array<Kind, kDoubtCount> kKinds = {{
    {"damaged-record", "the record that names this code contradicts itself (see 'perfmap lint')"},
    {"clamped-range", "the size of this code was cut to what its file has (see 'perfmap lint')"},
    {"reused-address",
     "several entries of the map name this address, and a map has no times: the last one counts"},
    {"guessed-owner",
     "the process is gone: its file was accepted because of its owner and times, or was written "
     "after the process had ended"},
    {"guessed-call",
     "the code before this return address is not known: it may belong to the next function"},
    {"scanned-frame", "this frame was found by a scan of the stack and may not be a caller"},
    {"stitched-frame", "this frame comes from another sample of the same thread"},
    {"remapped-memory",
     "the name is that of the parent process, and the process may have mapped this memory again "
     "since the fork"},
    {"unrecorded-memory",
     "the recording has no executable mapping at this address, as after mremap(), and the name has "
     "no time: the memory may have been used for something else"},
}};

const Kind& kind_of(Doubt one) noexcept {
  return kKinds[static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(one)))];
}

}  // namespace

std::string_view to_string(Doubt one) noexcept { return kind_of(one).name; }

std::string_view explain(Doubt one) noexcept { return kind_of(one).explanation; }

std::string to_string(Doubts doubts) {
  std::string text;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (!doubts.has(doubt_at(i))) continue;
    if (!text.empty()) text += ',';
    text += to_string(doubt_at(i));
  }
  return text;
}

}  // namespace perfmap
