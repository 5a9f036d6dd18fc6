#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>

#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/process_watch.hpp"

namespace perfmap {

/// A map or a dump that is followed: what of it was told.
class WatchedFile {
 public:
  /// `inherited_from`: see WatchEvent.
  WatchedFile(Input input, pid_t inherited_from);

  const std::string& name() const noexcept { return input().name(); }
  const FileFacts& facts() const noexcept { return input().facts(); }
  pid_t inherited_from() const noexcept { return inherited_from_; }

  /// Goes over what is there without a word.
  void skip();
  /// Tells what was added since.
  void look(const ProcessWatch::Visit& visit, WatchTotals& totals);
  /// Nobody writes any more: tells a last line without its newline, too.
  void finish(const ProcessWatch::Visit& visit, WatchTotals& totals);

 private:
  const Input& input() const noexcept;
  void begin();
  void tell(const ProcessWatch::Visit& visit, WatchTotals& totals);
  void tell_lines(const Map& map, const ProcessWatch::Visit& visit, WatchTotals& totals);
  void tell_records(const Jitdump& dump, const ProcessWatch::Visit& visit, WatchTotals& totals);
  bool tell_record(const Jitdump& dump, const JitRecord& record, const ProcessWatch::Visit& visit,
                   WatchTotals& totals);

  std::variant<Map, Jitdump> file_;
  pid_t inherited_from_;
  std::uint64_t told_ = 0;                                  // bytes
  std::uint64_t line_ = 1;                                  // that comes next
  std::unordered_map<std::uint64_t, std::uint64_t> loads_;  // by code index: offset of the last
  bool is_removed_ = false;
  bool is_told_ = false;  // that it was looked at, whatever was in it
};

}  // namespace perfmap
