// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.hpp"
#include "io/chunk_reader.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/text.hpp"
#include "pypylog/pypy_lines.hpp"
#include "pypylog/reader.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kNone = CompiledLoop::kNone;

/// The meaning of a section's category: a loop is entered or left, or the section describes loops.
enum class Meaning : std::uint8_t { nothing, enter, leave, addresses, operations, counts, code };

constexpr std::pair<std::string_view, Meaning> kMeanings[] = {
    {"jit-profile-enter", Meaning::enter},       {"jit-profile-exit", Meaning::leave},
    {"jit-backend-addr", Meaning::addresses},    {"jit-log-opt-loop", Meaning::operations},
    {"jit-log-opt-bridge", Meaning::operations}, {"jit-backend-counts", Meaning::counts},
    {"jit-backend-dump", Meaning::code}};

bool is_event(Meaning meaning) noexcept {
  return meaning == Meaning::enter || meaning == Meaning::leave;
}

std::string numbered_key(bool is_bridge, std::uint64_t id) {
  return (is_bridge ? "b" : "l") + to_hex(id);
}

/// A canonical spelling for all names of a loop.
std::string key_of(std::string_view name) {
  const LoopName parsed = parse_loop_name(name);
  return parsed.id ? numbered_key(parsed.is_bridge, *parsed.id) : "n" + std::string(name);
}

void set_place(CompiledLoop& loop, std::string_view text) {
  const PypyPlace place = parse_pypy_place(text);
  loop.function = place.function;
  loop.file = place.file;
  loop.first_line = place.first_line;
  loop.line = place.line;
}

}  // namespace

/// Builds loops and bridges from the lines of sections that describe them. If several have the same
/// name, the latest is meant.
class LoopSections {
 public:
  explicit LoopSections(CompiledLoops& loops) : all_(loops.all_), code_(loops.code_) {}

  // If two processes write the same section at once, their lines are mixed.
  void begin(Meaning meaning, const PypylogEvent& opened) {
    Section* const section = section_of(opened.thread);
    if (section != nullptr && section->meaning == meaning) {
      ++section->depth;
    } else {
      open_[opened.thread].push_back(
          {.meaning = meaning, .thread = opened.thread, .tick = opened.tick});
    }
  }

  void end(Meaning meaning, std::uint32_t thread) {
    Section* const section = section_of(thread);
    if (section == nullptr || section->meaning != meaning) return;
    if (--section->depth != 0) return;
    const auto sections = open_.find(thread);
    sections->second.pop_back();
    if (sections->second.empty()) open_.erase(sections);
  }

  bool is_open() const noexcept { return !open_.empty(); }

  /// Takes a line of that thread at `where`. False if the thread has no open section.
  bool take(std::uint32_t thread, std::string_view line, const Location& where,
            Diagnostics& problems) {
    Section* const section = section_of(thread);
    if (section != nullptr) take_line(*section, line, where, problems);
    return section != nullptr;
  }

  /// The loop of that name, created if missing; kNone for an empty name.
  std::uint32_t find_or_add(std::string_view name) {
    if (name.empty()) return kNone;
    const std::uint32_t known = find(key_of(name));
    if (known != kNone) return known;
    const std::uint32_t index = add(name);
    adopt(index);
    return index;
  }
  /// The latest loop with the name of this one.
  std::uint32_t latest(std::uint32_t loop) const noexcept { return *latest_of_[loop]; }

 private:
  /// An open section of a thread, and the subject of its lines so far.
  struct Section {
    Meaning meaning = Meaning::nothing;
    std::uint32_t thread = CompiledLoop::kNoThread;
    PypylogTick tick = {};
    std::uint32_t depth = 1;
    std::uint32_t loop = kNone;              // the loop of the current operations or entries
    std::vector<std::uint32_t> placed = {};  // loops with an address in this section; several if
                                             // mixed
  };
  struct Part {  // a guard or label of a loop
    std::uint32_t loop = kNone;
    std::uint32_t number = 0;
  };

  static constexpr std::uint64_t kMaxCode = std::uint64_t{1} << 30;
  static constexpr std::size_t kMaxPlacedAtOnce = 16;

  /// The innermost one.
  Section* section_of(std::uint32_t thread) noexcept {
    const auto found = open_.find(thread);
    return found == open_.end() ? nullptr : &found->second.back();
  }

  std::uint32_t find(const std::string& key) const {
    const auto found = latest_.find(key);
    return found == latest_.end() ? kNone : found->second;
  }

  /// Adds a loop; it becomes the latest of its name.
  std::uint32_t add(std::string_view name) {
    const auto index = static_cast<std::uint32_t>(all_.size());
    const LoopName parsed = parse_loop_name(name);
    CompiledLoop& loop = all_.emplace_back();
    loop.kind = parsed.is_bridge ? CompiledLoop::Kind::bridge : CompiledLoop::Kind::loop;
    loop.id = parsed.id.value_or(0);
    loop.name = name;
    if (parsed.is_bridge && parsed.id) loop.name = "bridge out of Guard 0x" + to_hex(loop.id);
    set_place(loop, parsed.place);
    latest_of_.push_back(&latest_.insert_or_assign(key_of(name), index).first->second);
    return index;
  }

  void take_line(Section& section, std::string_view whole, const Location& where,
                 Diagnostics& problems) {
    const std::string_view line = plain_pypylog_line(whole);
    const auto offset_of = [&](std::string_view part) {
      return where.offset + static_cast<std::uint64_t>(part.data() - whole.data());
    };
    if (section.meaning == Meaning::addresses) {
      take_address(section, line, where, problems);
    } else if (section.meaning == Meaning::counts) {
      take_count(section, line);
    } else if (section.meaning == Meaning::operations) {
      const bool had_title = section.loop != kNone;
      take_operation(section, line);
      if (section.loop == kNone) return;
      LogSpan& span = all_[section.loop].operations;
      if (!had_title) span.offset = offset_of(line);
      span.size = where.offset + whole.size() - span.offset;
    } else if (const auto bytes = parse_code_line(line)) {
      code_.push_back({bytes->address, {offset_of(bytes->hex), bytes->hex.size()}});
    }
  }

  void make_no_sense(CompiledLoop& loop, const Location& where, Diagnostics& problems) {
    problems.add(rule::kOddCode, where, "the addresses of " + loop.name + " are invalid");
    loop.code = {};
  }

  void take_address(Section& section, std::string_view line, const Location& where,
                    Diagnostics& problems) {
    if (const auto placed = parse_placed_line(line)) {
      place(section, *placed, where, problems);
    } else if (const auto part = parse_part_line(line)) {
      const bool is_begin = part->part == "function" || part->part == "jump target";
      if (is_begin || part->part == "end") {
        move_edge(section, is_begin, part->address, where, problems);
      }
    }
  }

  void place(Section& section, const PlacedLine& line, const Location& where,
             Diagnostics& problems) {
    std::uint32_t index = find(key_of(line.name));
    // A loop that already has an address, or was described before it got one, is another loop of
    // the same name.
    const bool is_known =
        index != kNone && all_[index].code.size == 0 && all_[index].operations.empty();
    if (!is_known) index = add(line.name);
    CompiledLoop& loop = all_[index];
    loop.name = line.name;
    loop.compiled = section.tick;
    loop.placed = where.offset;
    loop.thread = section.thread;
    const bool is_entered_before = line.bootstrap != 0 && line.bootstrap < line.begin;
    const Address begin = is_entered_before ? line.bootstrap : line.begin;
    if (line.end < line.begin || line.end - begin > kMaxCode) {
      make_no_sense(loop, where, problems);
    } else {
      loop.code = AddressRange::clamped(begin, line.end - begin);
      loop.operations_end = loop.code.end();
    }
    adopt(index);
    if (section.placed.size() == kMaxPlacedAtOnce) section.placed.erase(section.placed.begin());
    section.placed.push_back(index);
  }

  /// Sets where a loop's code begins (before its loop) or ends (after it). If lines of two
  /// processes are mixed, the edge belongs to the loop that fits best.
  void move_edge(Section& section, bool is_begin, Address address, const Location& where,
                 Diagnostics& problems) {
    std::uint32_t best = kNone;
    std::uint64_t least = UINT64_MAX;
    for (const std::uint32_t index : section.placed) {
      const AddressRange& range = all_[index].code;
      const std::uint64_t distance = is_begin ? range.begin - address : address - range.end();
      if (distance >= least) continue;
      least = distance;
      best = index;
    }
    if (best == kNone) return;
    AddressRange& range = all_[best].code;
    if (least > kMaxCode) return make_no_sense(all_[best], where, problems);
    const Address begin = is_begin ? address : range.begin;
    range = AddressRange::clamped(begin, (is_begin ? range.end() : address) - begin);
  }

  void begin_operations(Section& section, const OperationsTitle& title) {
    std::uint32_t index = find(key_of(title.name));
    if (index == kNone || !all_[index].operations.empty()) index = add(title.name);
    CompiledLoop& loop = all_[index];
    loop.name = title.name;
    loop.type = title.type;
    loop.thread = section.thread;
    if (loop.compiled == PypylogTick{}) loop.compiled = section.tick;
    adopt(index);
    section.loop = index;
  }

  void take_operation(Section& section, std::string_view line) {
    if (const auto title = parse_operations_title(line)) return begin_operations(section, *title);
    if (section.loop == kNone) return;
    const auto parsed = parse_operation_line(line);
    if (!parsed) return;
    CompiledLoop& loop = all_[section.loop];
    if (!parsed->place.empty() && loop.function.empty()) set_place(loop, parsed->place);
    if (parsed->guard != 0) add_guard(section.loop, parsed->guard, parsed->operation);
    if (parsed->token == 0) return;
    if (parsed->operation == "label") {
      labels_[parsed->token] = {section.loop, static_cast<std::uint32_t>(loop.labels.size())};
      loop.labels.push_back({parsed->token});
    } else {
      loop.jumps_to = parsed->token;
      settle_jump(loop);
    }
  }

  void add_guard(std::uint32_t index, Address address, std::string_view operation) {
    std::vector<CompiledLoop::Guard>& guards = all_[index].guards;
    guards_[address] = {index, static_cast<std::uint32_t>(guards.size())};
    guards.push_back({address, std::string(operation)});
    const std::uint32_t bridge = find(numbered_key(true, address));
    if (bridge != kNone) adopt(bridge);
  }

  /// Finds the loop whose guard a bridge starts from.
  void adopt(std::uint32_t bridge) {
    CompiledLoop& child = all_[bridge];
    if (child.kind != CompiledLoop::Kind::bridge || child.owner != kNone) return;
    const auto found = guards_.find(child.id);
    if (found == guards_.end() || found->second.loop == bridge) return;
    CompiledLoop& owner = all_[found->second.loop];
    child.owner = found->second.loop;
    child.loop = owner.kind == CompiledLoop::Kind::loop ? child.owner : owner.loop;
    owner.guards[found->second.number].bridge = bridge;
    settle_jump(child);
  }

  void settle_jump(CompiledLoop& loop) {
    if (loop.kind != CompiledLoop::Kind::bridge || loop.jumps_to == 0) return;
    const auto target = labels_.find(loop.jumps_to);
    loop.is_inner =
        target != labels_.end() && loop.loop != kNone && target->second.loop == loop.loop;
  }

  void take_count(Section& section, std::string_view line) {
    const auto parsed = parse_count_line(line);
    if (!parsed) return;
    if (parsed->of != CountLine::Of::label) {
      const bool is_bridge = parsed->of == CountLine::Of::bridge;
      section.loop = find_or_add((is_bridge ? "bridge " : "Loop ") + std::to_string(parsed->id));
      all_[section.loop].entries = parsed->count;
      return;
    }
    // If a loop's entries were just counted, and its number equals that of another loop with this
    // label, the log is shared by processes: the later loop is meant.
    const auto known = labels_.find(parsed->id);
    const std::uint32_t labelled = known == labels_.end() ? kNone : known->second.loop;
    const std::uint32_t entered = section.loop;
    const bool is_others = labelled != kNone && entered != kNone && entered != labelled &&
                           all_[entered].kind == all_[labelled].kind &&
                           all_[entered].id == all_[labelled].id;
    if (labelled != kNone && !is_others) {
      all_[labelled].labels[known->second.number].count = parsed->count;
    } else if (entered != kNone) {
      all_[entered].labels.push_back({parsed->id, parsed->count});
    }
  }

  std::vector<CompiledLoop>& all_;
  std::vector<CodeBytes>& code_;
  std::map<std::uint32_t, std::vector<Section>> open_;     // by thread, outermost first
  std::unordered_map<std::string, std::uint32_t> latest_;  // loops by their keys
  std::vector<const std::uint32_t*> latest_of_;            // the value in latest_, by loop
  std::unordered_map<Address, Part> guards_;
  std::unordered_map<std::uint64_t, Part> labels_;
};

std::uint32_t CompiledLoops::find(std::string_view name) const {
  for (const std::string_view before : {"", "Loop ", "bridge ", "bridge 0x"}) {
    const std::string key = key_of(std::string(before).append(name));
    const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const CompiledLoop& loop) {
      return key_of(loop.name) == key;
    });
    if (found != all_.rend()) return static_cast<std::uint32_t>(all_.rend() - found - 1);
  }
  const auto called = std::find_if(all_.begin(), all_.end(), [&](const CompiledLoop& loop) {
    return loop.function == name && !name.empty();
  });
  return called == all_.end() ? kNone : static_cast<std::uint32_t>(called - all_.begin());
}

std::optional<std::uint64_t> CompiledLoop::iterations() const noexcept {
  std::optional<std::uint64_t> sum;
  for (const Label& label : labels) {
    if (!label.count) continue;
    std::uint64_t next = 0;
    const bool overflows = __builtin_add_overflow(sum.value_or(0), *label.count, &next);
    sum = overflows ? UINT64_MAX : next;
  }
  return sum ? sum : entries;
}

namespace {

/// Differences and sums of ticks, in both bases at once (decimal and hexadecimal).
PypylogTick operator-(PypylogTick a, const PypylogTick& b) noexcept {
  return {a.hex - b.hex, a.dec - b.dec};
}
PypylogTick& operator+=(PypylogTick& a, const PypylogTick& b) noexcept {
  a.hex += b.hex;
  a.dec += b.dec;
  return a;
}

/// Time of a loop or a category, in both bases.
struct Sum {
  PypylogTick ticks = {};
  std::uint64_t entered = 0;
};

struct CategorySum : Sum {
  std::string name = {};
  Meaning meaning = Meaning::nothing;
};

/// An open jit-profile section.
struct LoopEvent {
  Meaning meaning = Meaning::nothing;  // nothing: not open
  bool counts = false;                 // its time is in the requested span
  PypylogTick tick = {};
};

/// The current state of a thread.
struct ThreadClock {
  std::uint32_t number = CompiledLoop::kNoThread;
  bool has_started = false;
  bool is_in_inner_bridge = false;  // an inner bridge of `loop`, which is not counted separately
  std::uint32_t loop = kNone;
  PypylogTick first = {};
  PypylogTick last = {};     // sections are accounted for up to here
  PypylogTick changed = {};  // loops are accounted for up to here
  PypylogTick outside = {};
  PypylogTick rest = {};
  LoopEvent event = {};
  std::vector<std::uint32_t> open = {};  // categories of open sections, outermost first
};

/// A loop that an event names, and how its time is counted.
struct NamedLoop {
  std::uint64_t version = 0;  // version of the known loops; 0: none
  std::uint32_t loop = kNone;
  std::uint32_t counted = kNone;  // the loop that gets the time
  bool is_ignored = false;        // an inner bridge, whose time belongs to its loop
};

Location place_of(const PypylogEvent& event) noexcept { return {event.offset, event.line, 1}; }

/// The location of the line that closes a complete section.
Location end_of(const PypylogEvent& event) noexcept {
  return {event.inside_offset + event.inside.size(), event.line + (event.inside.empty() ? 1 : 2),
          1};
}

}  // namespace

/// Attributes the time between a log's section lines.
struct LoopProfile::State : Results {
  static constexpr std::size_t kMaxDepth = 4096;
  static constexpr std::size_t kMaxThreads = 65536;

  explicit State(Options wanted) : options(std::move(wanted)) {
    base = options.base;
    counts_inner_bridges = options.count_inner_bridges;
  }

  Options options;
  PypylogReader reader;
  LoopSections sections{loops};
  std::size_t unnamed = 0;  // threads in a jit-profile section without a loop name so far
  std::size_t wanting = 0;  // threads whose innermost section's text is needed
  std::size_t recent = 0;   // thread of the last event
  std::vector<NamedLoop> named_in_slots;  // by PypylogEvent::inside_slot
  std::uint64_t version = 1;              // of the known loops in `sections`
  std::vector<Sum> loop_sums;
  std::vector<CategorySum> category_sums;  // by PypylogEvent::category
  std::vector<ThreadClock> clocks;
  std::unordered_map<std::uint32_t, std::size_t> clock_numbers;  // positions in clocks

  /// Until a tick with a hex letter is seen, the decimal values have the same order as the
  /// hexadecimal ones.
  std::uint64_t value(const PypylogTick& tick) const noexcept {
    return base == TickBase::hex ? tick.hex : tick.dec;
  }
  bool less(const PypylogTick& a, const PypylogTick& b) const noexcept {
    return value(a) < value(b);
  }
  /// The nearest tick in the requested span.
  PypylogTick clamped(const PypylogTick& tick) const noexcept {
    if (options.from && less(tick, *options.from)) return *options.from;
    return options.to && less(*options.to, tick) ? *options.to : tick;
  }
  bool counts(const PypylogTick& tick) const noexcept {
    return value(clamped(tick)) == value(tick);
  }

  ThreadClock* find_thread(std::uint32_t number) noexcept {
    if (recent < clocks.size() && clocks[recent].number == number) return &clocks[recent];
    const auto found = clock_numbers.find(number);
    if (found == clock_numbers.end()) return nullptr;
    recent = found->second;
    return &clocks[recent];
  }

  ThreadClock* find_or_add_thread(const PypylogEvent& event) {
    if (ThreadClock* const known = find_thread(event.thread)) return known;
    if (clocks.size() == kMaxThreads) {
      problems.add(rule::kTooManySections, place_of(event),
                   "too many threads: this one is ignored");
      return nullptr;
    }
    clock_numbers.emplace(event.thread, clocks.size());
    clocks.push_back({.number = event.thread});
    return &clocks.back();
  }

  /// The time of an event for accounting: never before the last event of its thread.
  PypylogTick tick_of(ThreadClock& thread, const PypylogEvent& event, bool closed = false) {
    const PypylogTick& tick = closed ? event.closed : event.tick;
    const bool is_plain = base == TickBase::hex && !options.from && !options.to &&
                          thread.has_started && tick.hex >= thread.last.hex;
    if (is_plain) return tick;
    return closed ? odd_tick_of(thread, tick, event.closed_has_letter, end_of(event))
                  : odd_tick_of(thread, tick, event.has_letter, place_of(event));
  }

  PypylogTick odd_tick_of(ThreadClock& thread, PypylogTick tick, bool has_letter,
                          const Location& where) {
    if (has_letter && base == TickBase::automatic) base = TickBase::hex;
    if (has_letter && base == TickBase::dec) {
      problems.add(rule::kOddTick, where, "the time is not a decimal number");
      if (thread.has_started) return thread.last;
      tick = {};
    }
    tick = clamped(tick);
    if (!thread.has_started) {
      thread.has_started = true;
      thread.first = thread.last = thread.changed = tick;
    }
    if (!less(tick, thread.last)) return tick;
    problems.add(rule::kTickRunsBack, where, "the time goes back");
    return thread.last;
  }

  /// Builds a message only if it will be kept.
  void report(const Rule& rule, const Location& where, const char* what, std::string_view name) {
    if (problems.count(rule)) problems.keep({&rule, where, std::string(what).append(name)});
  }

  /// The time since the thread's last section line belongs to its innermost section.
  void account(ThreadClock& thread, const PypylogTick& tick) {
    if (options.visit && base != TickBase::automatic && less(thread.last, tick)) {
      const std::uint64_t begin = value(thread.last);
      options.visit({thread.number, begin, value(tick) - begin, thread.loop, thread.open});
    }
    (thread.open.empty() ? thread.rest : category_sums[thread.open.back()].ticks) +=
        tick - thread.last;
    thread.last = tick;
  }

  /// The time since the last change belongs to the thread's current loop, or to none.
  void settle_loop(ThreadClock& thread, const PypylogTick& tick) {
    (thread.loop == kNone ? thread.outside : sum_of(thread.loop).ticks) += tick - thread.changed;
    thread.changed = tick;
  }
  Sum& sum_of(std::uint32_t loop) {
    if (loop_sums.size() <= loop) loop_sums.resize(loop + std::size_t{1});
    return loop_sums[loop];
  }

  /// Whether the text in the thread's innermost section is needed.
  std::size_t wants_text(const ThreadClock& thread) const noexcept {
    return !thread.open.empty() && category_sums[thread.open.back()].meaning != Meaning::nothing;
  }
  void push(ThreadClock& thread, std::uint32_t category) {
    wanting -= wants_text(thread);
    thread.open.push_back(category);
    wanting += wants_text(thread);
  }
  void pop(ThreadClock& thread) {
    wanting -= wants_text(thread);
    thread.open.pop_back();
    wanting += wants_text(thread);
  }

  /// The reader numbers categories in order, so each must be registered, even if its line does not
  /// count. Returns whether it is new.
  bool meet_category(const PypylogEvent& event) {
    if (event.category == PypylogEvent::kNoCategory) return false;
    if (event.category < category_sums.size()) return false;
    CategorySum& category = category_sums.emplace_back();
    category.name = event.text;
    for (const auto& [name, meaning] : kMeanings) {
      if (event.text == name) category.meaning = meaning;
    }
    if (category.meaning == Meaning::code && !options.keep_code_bytes) {
      category.meaning = Meaning::nothing;
    }
    return true;
  }

  void open(ThreadClock& thread, const PypylogEvent& event) {
    const PypylogTick tick = tick_of(thread, event);
    account(thread, tick);
    if (event.category == PypylogEvent::kNoCategory || thread.open.size() == kMaxDepth) {
      problems.add(rule::kTooManySections, place_of(event),
                   "too many sections: this one is ignored");
      return;
    }
    CategorySum& category = category_sums[event.category];
    const bool is_counted = counts(event.tick);
    category.entered += is_counted ? 1 : 0;
    push(thread, event.category);
    if (is_event(category.meaning)) {
      has_events = true;
      if (is_event(thread.event.meaning)) leave_unnamed(thread, thread.event, place_of(event));
      thread.event = {category.meaning, is_counted, tick};
      ++unnamed;
    } else if (category.meaning != Meaning::nothing) {
      sections.begin(category.meaning, event);
      ++version;
    }
  }

  void close(ThreadClock& thread, const PypylogEvent& event) {
    const auto found = std::find(thread.open.rbegin(), thread.open.rend(), event.category);
    if (found == thread.open.rend()) {
      account(thread, tick_of(thread, event));
      return report(rule::kUnopenedSection, place_of(event),
                    "a section ends but did not begin: ", event.text);
    }
    const Meaning meaning = category_sums[event.category].meaning;
    if (is_event(meaning) && thread.event.meaning == meaning) {
      leave_unnamed(thread, thread.event, place_of(event));
    }
    account(thread, tick_of(thread, event));
    for (; thread.open.back() != event.category; pop(thread)) {
      report(rule::kUnendedSection, place_of(event),
             "a section does not end: ", category_sums[thread.open.back()].name);
    }
    pop(thread);
    if (!is_event(meaning) && meaning != Meaning::nothing) sections.end(meaning, event.thread);
  }

  void take(const PypylogEvent& event) {
    if (event.kind == PypylogEvent::Kind::text) return take_text(event.text, place_of(event));
    const bool is_new = meet_category(event);
    ThreadClock* const thread = find_or_add_thread(event);
    if (thread == nullptr) return;
    switch (event.kind) {
      case PypylogEvent::Kind::open: return open(*thread, event);
      case PypylogEvent::Kind::close: return close(*thread, event);
      default: return take_whole(*thread, event, is_new);
    }
  }

  /// Handles a section that is opened and closed at once, as most are, without updating the list of
  /// open sections, because no line comes in between.
  void take_whole(ThreadClock& thread, const PypylogEvent& event, bool is_new) {
    if (event.is_inside_new && !named_in_slots.empty()) named_in_slots[event.inside_slot] = {};
    const bool is_known = !is_new && event.category != PypylogEvent::kNoCategory;
    const Meaning meaning = is_known ? category_sums[event.category].meaning : Meaning::nothing;
    const bool is_simple = !options.visit && is_known && thread.open.size() < kMaxDepth &&
                           !is_event(thread.event.meaning) &&
                           (meaning == Meaning::nothing || is_event(meaning));
    if (!is_simple) return take_parts(thread, event);
    const PypylogTick opened = tick_of(thread, event);
    account(thread, opened);
    const bool is_counted = counts(event.tick);
    category_sums[event.category].entered += is_counted ? 1 : 0;
    if (meaning != Meaning::nothing) {
      has_events = true;
      const LoopEvent change{meaning, is_counted, opened};
      const NamedLoop& named = loop_in(event);
      if (named.loop != kNone) {
        take_loop(thread, change, named, place_of(event));
      } else {
        leave_unnamed(thread, change, place_of(event));
      }
    }
    const PypylogTick closed = tick_of(thread, event, true);
    category_sums[event.category].ticks += closed - opened;
    thread.last = closed;
  }

  void take_parts(ThreadClock& thread, const PypylogEvent& event) {
    open(thread, event);
    if (wanting != 0) take_text(event.inside, {event.inside_offset, event.line + 1, 1});
    PypylogEvent last = event;
    last.offset = end_of(event).offset;
    last.line = end_of(event).line;
    last.tick = event.closed;
    last.has_letter = event.closed_has_letter;
    close(thread, last);
  }

  /// Lines in jit-profile sections name loops; lines in other sections may describe them.
  void take_text(std::string_view text, const Location& where) {
    if (unnamed == 0 && !sections.is_open()) return;
    Location at = where;
    for_each_line(text, [&](std::string_view line, std::size_t offset) {
      at.offset = where.offset + offset;
      const std::uint32_t number = pypylog_thread(line);
      ThreadClock* const thread = unnamed == 0 ? nullptr : find_thread(number);
      const bool names = thread != nullptr && is_naming(*thread);
      const std::uint32_t loop = names ? loop_named_by(line) : kNone;
      if (loop != kNone) {
        take_loop(*thread, thread->event, named(loop), at);
        end_event(*thread);
      }
      if (sections.take(number, line, at, problems)) ++version;
      ++at.line;
    });
  }

  /// Whether the text is directly in a jit-profile section.
  bool is_naming(const ThreadClock& thread) const noexcept {
    return is_event(thread.event.meaning) && !thread.open.empty() &&
           category_sums[thread.open.back()].meaning == thread.event.meaning;
  }
  void end_event(ThreadClock& thread) {
    thread.event = {};
    --unnamed;
  }

  std::uint32_t loop_named_by(std::string_view line) {
    return sections.find_or_add(event_name(plain_pypylog_line(line)));
  }
  NamedLoop named(std::uint32_t loop) const noexcept {
    const CompiledLoop& named = loops.all()[loop];
    const bool is_ignored = named.is_inner && !counts_inner_bridges;
    return {version, loop, is_ignored ? named.loop : loop, is_ignored};
  }

  /// The loop that a complete section names. Results for recent lines are cached until another loop
  /// is compiled.
  const NamedLoop& loop_in(const PypylogEvent& event) {
    if (named_in_slots.empty()) named_in_slots.resize(PypylogEvent::kSlots + std::size_t{1});
    NamedLoop& known = named_in_slots[std::min(event.inside_slot, PypylogEvent::kSlots)];
    const bool came_lately =
        event.inside_slot != PypylogEvent::kNoSlot && !event.is_inside_new && known.loop != kNone;
    if (came_lately && known.version == version) return known;
    const std::uint32_t loop =
        came_lately ? sections.latest(known.loop) : loop_named_by(event.inside);
    known = loop == kNone ? NamedLoop{} : named(loop);
    return known;
  }

  void take_loop(ThreadClock& thread, const LoopEvent& change, const NamedLoop& named,
                 const Location& where) {
    settle_loop(thread, change.tick);
    if (change.meaning == Meaning::enter) {
      // The jump back from an inner bridge does not count as an entry of its loop.
      const bool returns = thread.is_in_inner_bridge && thread.loop == named.loop;
      if (change.counts && !returns) ++sum_of(named.loop).entered;
      thread.loop = named.counted;
      thread.is_in_inner_bridge = named.is_ignored;
      return;
    }
    if (thread.loop != named.counted) {
      report(rule::kOtherLoop, where,
             "a loop that is not the current one is left: ", loops.all()[named.loop].name);
    }
    thread.loop = kNone;
    thread.is_in_inner_bridge = false;
  }

  void leave_unnamed(ThreadClock& thread, const LoopEvent& change, const Location& where) {
    problems.add(rule::kUnnamedLoop, where, "the section names no loop");
    leave_loop(thread, change.tick);
  }
  /// The time from here on belongs to no loop.
  void leave_loop(ThreadClock& thread, const PypylogTick& tick) {
    settle_loop(thread, tick);
    thread.loop = kNone;
    thread.is_in_inner_bridge = false;
    if (is_event(thread.event.meaning)) end_event(thread);
  }

  void finish() {
    for (ThreadClock& thread : clocks) {
      if (is_event(thread.event.meaning)) leave_loop(thread, thread.event.tick);
      settle_loop(thread, thread.last);
      for (const std::uint32_t category : thread.open) {
        report(rule::kUnendedSection, {},
               "the log ends in a section: ", category_sums[category].name);
      }
    }
    if (base == TickBase::automatic) base = clocks.empty() ? TickBase::hex : TickBase::dec;
    loop_sums.resize(loops.all().size());
    for (const Sum& sum : loop_sums) times.push_back({value(sum.ticks), sum.entered});
    for (const CategorySum& sum : category_sums) {
      categories.push_back({sum.name, value(sum.ticks), sum.entered});
    }
    for (const ThreadClock& thread : clocks) {
      threads.push_back({thread.number, value(thread.first), value(thread.last),
                         value(thread.outside), value(thread.rest)});
      ticks += threads.back().ticks();
      outside += threads.back().outside;
      rest += threads.back().rest;
    }
  }
};

LoopProfile::LoopProfile(Options options) : state_(std::make_unique<State>(std::move(options))) {}
LoopProfile::LoopProfile(LoopProfile&&) noexcept = default;
LoopProfile& LoopProfile::operator=(LoopProfile&&) noexcept = default;
LoopProfile::~LoopProfile() = default;

void LoopProfile::add(std::string_view lines) {
  if (!lines.empty() && lines.back() != '\n' && lines.back() != '}' &&
      !plain_pypylog_line(lines).ends_with('}')) {
    lines = lines.substr(0, lines.rfind('\n') + 1);  // the last line is not complete yet
  }
  State& state = *state_;
  state.reader.feed(lines);
  while (const PypylogEvent* const event = state.reader.next(state.wanting != 0)) {
    state.take(*event);
  }
}

void LoopProfile::finish() { state_->finish(); }

bool LoopProfile::has_sections() const noexcept { return !state_->clocks.empty(); }
const LoopProfile::Results& LoopProfile::results() const noexcept { return *state_; }

void read_pypylog(const Input& input, LoopProfile& profile,
                  const std::function<void(std::uint64_t)>& progress) {
  ChunkReader windows(input, input.text(), 0);
  std::uint64_t position = 0;
  for (Window window = windows.next(); !window.text.empty(); window = windows.next()) {
    profile.add(window.text);
    position += window.text.size();
    if (progress) progress(position);
  }
}

}  // namespace perfmap
