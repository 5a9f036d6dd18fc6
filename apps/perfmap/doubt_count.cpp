#include "doubt_count.hpp"

namespace perfmap::app {

void DoubtCount::add(Doubts doubts) noexcept {
  ++all_;
  if (!doubts.any()) return;
  ++doubtful_;
  for (unsigned i = 0; i < kDoubtCount; ++i) kinds_[i] += doubts.has(doubt_at(i)) ? 1 : 0;
}

void DoubtCount::note(const Console& console, const std::string& what) const {
  if (doubtful_ == 0) return;
  std::string text = std::to_string(doubtful_) + " of " + std::to_string(all_) + " " + what +
                     (all_ == 1 ? " is doubtful: " : "s are doubtful: ");
  bool first = true;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (kinds_[i] == 0) continue;
    if (!first) text += ", ";
    first = false;
    text += std::to_string(kinds_[i]) + " " + std::string(to_string(doubt_at(i)));
  }
  console.note(console.verbose() ? text : text + " (--verbose explains)");
  if (!console.verbose()) return;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (kinds_[i] == 0) continue;
    console.note(std::string(to_string(doubt_at(i))) + ": " + std::string(explain(doubt_at(i))));
  }
}

std::string doubt_mark(Doubts doubts, bool verbose) {
  if (!doubts.any()) return {};
  return verbose ? " (? " + to_string(doubts) + ")" : " (?)";
}

}  // namespace perfmap::app
