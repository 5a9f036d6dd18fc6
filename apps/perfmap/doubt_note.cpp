#include "doubt_note.hpp"

namespace perfmap::app {

void note_doubts(const DoubtCounts& counts, std::string_view what, const Console& console) {
  if (counts.doubtful == 0) return;
  std::string kinds;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (counts.kinds[i] == 0) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(counts.kinds[i]) + " ";
    kinds += to_string(doubt_at(i));
  }
  // "1 of 1 answer", "1 of 2 answers": `what` is a plural in -s.
  if (counts.all == 1) what.remove_suffix(1);
  console.note(std::to_string(counts.doubtful) + " of " + std::to_string(counts.all) + " " +
               std::string(what) + (counts.doubtful == 1 ? " is" : " are") + " doubtful: " + kinds +
               (console.verbose() ? "" : " (--verbose explains)"));
  if (!console.verbose()) return;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (counts.kinds[i] == 0) continue;
    console.note(std::string(to_string(doubt_at(i))) + ": " + std::string(explain(doubt_at(i))));
  }
}

std::string doubt_mark(Doubts doubts, bool verbose) {
  if (!doubts.any()) return {};
  return verbose ? " (? " + to_string(doubts) + ")" : " (?)";
}

}  // namespace perfmap::app
