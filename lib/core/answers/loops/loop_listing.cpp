#include "perfmap/loop_listing.hpp"

#include <algorithm>
#include <unordered_map>

#include "formats/pypy_lines.hpp"

namespace perfmap {
namespace {

class Lister {
 public:
  explicit Lister(const CompiledLoop& loop) {
    for (std::uint32_t i = 0; i < loop.guards.size(); ++i) guards_[loop.guards[i].address] = i;
    for (std::uint32_t i = 0; i < loop.labels.size(); ++i) labels_[loop.labels[i].token] = i;
  }

  void take(std::string_view line) {
    if (line.empty() || line.ends_with("--end of the loop--") || parse_operations_title(line))
      return;
    const auto parsed = parse_operation_line(line);
    if (parsed && parsed->operation == "debug_merge_point") {
      places_.push_back({parse_pypy_place(parsed->place)});
      return;
    }
    if (places_.empty()) places_.emplace_back();
    ListedOperation operation{line};
    if (parsed && parsed->guard != 0) operation.guard = number_in(guards_, parsed->guard);
    if (parsed && parsed->operation == "label") {
      operation.label = number_in(labels_, parsed->token);
    }
    places_.back().operations.push_back(operation);
  }

  std::vector<ListedPlace> finish() { return std::move(places_); }

 private:
  using Numbers = std::unordered_map<std::uint64_t, std::uint32_t>;

  static std::uint32_t number_in(const Numbers& numbers, std::uint64_t key) {
    const auto found = numbers.find(key);
    return found == numbers.end() ? CompiledLoop::kNone : found->second;
  }

  Numbers guards_;
  Numbers labels_;
  std::vector<ListedPlace> places_;
};

/// Lines of `thread` alone: where a log has threads, text may be of several.
void take_lines(std::string_view text, std::uint32_t thread, Lister& lister) {
  const bool has_threads = thread != PypylogEvent::kNoThread;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    if (!has_threads || pypylog_thread(line) == thread) {
      lister.take(plain_pypylog_line(line));
    }
    text.remove_prefix(end);
  }
}

}  // namespace

std::vector<ListedPlace> list_operations(const CompiledLoop& loop, std::string_view log) {
  const std::uint64_t begin = std::min<std::uint64_t>(loop.operations.offset, log.size());
  Lister lister(loop);
  PypylogReader reader(log.substr(begin, loop.operations.size));
  std::uint64_t depth = 0;  // of sections within that of the operations
  while (const auto event = reader.next(true)) {
    if (event->kind == PypylogEvent::Kind::text) {
      if (depth == 0) take_lines(event->text, loop.thread, lister);
    } else if (event->thread == loop.thread) {
      const bool opens = event->kind == PypylogEvent::Kind::open;
      depth = opens ? depth + 1 : depth - std::min<std::uint64_t>(depth, 1);
    }
  }
  return lister.finish();
}

}  // namespace perfmap
