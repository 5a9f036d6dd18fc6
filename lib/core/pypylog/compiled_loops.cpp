#include "perfmap/compiled_loops.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text.hpp"
#include "perfmap/rules.hpp"
#include "pypylog/pypy_lines.hpp"

namespace perfmap {

namespace loops {

namespace {

/// Loops and bridges by what they are called. Of several that are called alike the latest is meant:
/// a name leads to an identity, and that to a loop.
class LoopNames {
 public:
  static constexpr std::uint32_t kNone = CompiledLoop::kNone;

  /// The latest loop of that name, made in `all` where there is none; kNone without a name.
  std::uint32_t find_or_add(std::string_view name, std::vector<CompiledLoop>& all);
  /// The latest of those that are called as this one is.
  std::uint32_t latest(std::uint32_t loop) const noexcept {
    return latest_[identity_of_loop_[loop]];
  }
  /// The latest of that name, or kNone.
  std::uint32_t find(std::string_view name) const;
  /// A new one, which is the latest from now on. `name` says what it is.
  std::uint32_t add(std::string_view name, std::vector<CompiledLoop>& all);
  std::uint32_t find_bridge(std::uint64_t guard) const;
  std::uint32_t find_loop(std::uint64_t number) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Key = std::string;  // one spelling for an identity

  std::uint32_t identity_of(std::string_view name);
  std::uint32_t find_key(const Key& key) const;

  std::unordered_map<Key, std::uint32_t, Hash, std::equal_to<>> identities_;
  std::vector<std::uint32_t> latest_;  // of an identity
  std::vector<std::uint32_t> identity_of_loop_;
};

}  // namespace

namespace {

std::string numbered_key(bool is_bridge, std::uint64_t id) {
  return (is_bridge ? "b" : "l") + to_hex(id);
}

std::string key_of(std::string_view name) {
  const LoopName parsed = parse_loop_name(name);
  return parsed.id ? numbered_key(parsed.is_bridge, *parsed.id) : "n" + std::string(name);
}

CompiledLoop loop_called(std::string_view name) {
  const LoopName parsed = parse_loop_name(name);
  CompiledLoop loop{
      .kind = parsed.is_bridge ? CompiledLoop::Kind::bridge : CompiledLoop::Kind::loop,
      .id = parsed.id.value_or(0),
      .name = std::string(name)};
  if (parsed.is_bridge && parsed.id) loop.name = "bridge out of Guard 0x" + to_hex(*parsed.id);
  const PypyPlace place = parse_pypy_place(parsed.place);
  loop.function = place.function;
  loop.file = place.file;
  loop.first_line = place.first_line;
  loop.line = place.line;
  return loop;
}

std::uint32_t LoopNames::identity_of(std::string_view name) {
  const auto next = static_cast<std::uint32_t>(latest_.size());
  const auto [found, is_new] = identities_.try_emplace(key_of(name), next);
  if (is_new) latest_.push_back(kNone);
  return found->second;
}

std::uint32_t LoopNames::add(std::string_view name, std::vector<CompiledLoop>& all) {
  const auto index = static_cast<std::uint32_t>(all.size());
  all.push_back(loop_called(name));
  identity_of_loop_.push_back(identity_of(name));
  latest_[identity_of_loop_.back()] = index;
  return index;
}

std::uint32_t LoopNames::find_or_add(std::string_view name, std::vector<CompiledLoop>& all) {
  if (name.empty()) return kNone;
  const std::uint32_t identity = identity_of(name);
  return latest_[identity] != kNone ? latest_[identity] : add(name, all);
}

std::uint32_t LoopNames::find_key(const Key& key) const {
  const auto found = identities_.find(key);
  return found == identities_.end() ? kNone : latest_[found->second];
}

std::uint32_t LoopNames::find(std::string_view name) const { return find_key(key_of(name)); }
std::uint32_t LoopNames::find_bridge(std::uint64_t guard) const {
  return find_key(numbered_key(true, guard));
}
std::uint32_t LoopNames::find_loop(std::uint64_t number) const {
  return find_key(numbered_key(false, number));
}

}  // namespace

namespace {

/// Sections that tell of loops.
enum class Telling : std::uint8_t { nothing, addresses, operations, counts, code };
/// A section that is open in some thread, and what its lines have been about so far.
struct OpenSection {
  static constexpr std::uint32_t kNone = CompiledLoop::kNone;

  Telling telling = Telling::nothing;
  std::uint32_t thread = PypylogEvent::kNoThread;
  PypylogTick tick = {};
  std::uint32_t depth = 1;
  std::uint32_t loop = kNone;         // whose operations, or entries, the lines are
  std::vector<std::uint32_t> placed;  // loops whose addresses are told; several where lines mix
};

/// Makes loops of lines.
class LoopSections {
 public:
  void take(OpenSection& section, std::string_view line, std::uint64_t offset, std::uint64_t size,
            const Location& where, Diagnostics& problems);

  /// The one that an event or a count names.
  std::uint32_t find_or_add(std::string_view name);

  std::vector<CompiledLoop> all;
  std::vector<CodeBytes> code;
  LoopNames names;

 private:
  struct GuardOf {
    std::uint32_t loop = CompiledLoop::kNone;
    std::uint32_t guard = 0;
  };

  void take_address(OpenSection& section, std::string_view line, const Location& where,
                    Diagnostics& problems);
  void place(OpenSection& section, const PlacedLine& line, const Location& where,
             Diagnostics& problems);
  void take_part(OpenSection& section, std::string_view part, Address address,
                 const Location& where, Diagnostics& problems);
  void take_operation(OpenSection& section, std::string_view line);
  void begin_operations(OpenSection& section, std::string_view name, std::string_view type);
  void add_guard(std::uint32_t index, Address address, std::string_view operation);
  void adopt(std::uint32_t bridge);
  void settle_jump(std::uint32_t index);
  bool is_meant_instead(std::uint32_t entered, std::uint32_t labelled) const;
  void take_count(OpenSection& section, std::string_view line);

  std::unordered_map<Address, GuardOf> guards_;
  struct LabelOf {
    std::uint32_t loop = 0;
    std::uint32_t label = 0;
  };
  std::unordered_map<std::uint64_t, LabelOf> labels_;
};

}  // namespace

namespace {

constexpr std::uint32_t kNone = CompiledLoop::kNone;
constexpr std::uint64_t kMaxCode = std::uint64_t{1} << 30;
constexpr std::size_t kMaxPlacedAtOnce = 16;

Telling telling_of(std::string_view category) noexcept {
  if (category == "jit-backend-addr") return Telling::addresses;
  if (category == "jit-log-opt-loop" || category == "jit-log-opt-bridge") {
    return Telling::operations;
  }
  if (category == "jit-backend-counts") return Telling::counts;
  if (category == "jit-backend-dump") return Telling::code;
  return Telling::nothing;
}

void LoopSections::take(OpenSection& section, std::string_view line, std::uint64_t offset,
                        std::uint64_t size, const Location& where, Diagnostics& problems) {
  if (section.telling == Telling::addresses) {
    take_address(section, line, where, problems);
  } else if (section.telling == Telling::operations) {
    const bool had_title = section.loop != kNone;
    take_operation(section, line);
    if (section.loop == kNone) return;
    LogSpan& span = all[section.loop].operations;
    if (!had_title) span.offset = offset;
    span.size = offset + size - span.offset;
  } else if (section.telling == Telling::counts) {
    take_count(section, line);
  } else if (const auto bytes = parse_code_line(line)) {
    const std::uint64_t before = static_cast<std::uint64_t>(bytes->hex.data() - line.data());
    code.push_back({bytes->address, {offset + before, bytes->hex.size()}, section.tick});
  }
}

void LoopSections::take_address(OpenSection& section, std::string_view line, const Location& where,
                                Diagnostics& problems) {
  if (const auto placed = parse_placed_line(line)) {
    place(section, *placed, where, problems);
  } else if (const auto part = parse_part_line(line)) {
    take_part(section, part->part, part->address, where, problems);
  }
}

void LoopSections::place(OpenSection& section, const PlacedLine& line, const Location& where,
                         Diagnostics& problems) {
  std::uint32_t index = names.find(line.name);
  // What has an address already, or was told of before it had one, is another by the same name.
  const bool is_known =
      index != kNone && all[index].code.size == 0 && all[index].operations.empty();
  if (!is_known) index = names.add(line.name, all);
  CompiledLoop& loop = all[index];
  loop.name = line.name;
  loop.compiled = section.tick;
  loop.placed = where.offset;
  loop.thread = section.thread;
  const bool is_entered_before = line.bootstrap != 0 && line.bootstrap < line.begin;
  const Address begin = is_entered_before ? line.bootstrap : line.begin;
  if (line.end < line.begin || line.end - begin > kMaxCode) {
    problems.add(rule::kOddCode, where, "the addresses of " + loop.name + " make no sense");
  } else {
    loop.code = AddressRange::clamped(begin, line.end - begin);
    loop.operations_end = loop.code.end();
  }
  adopt(index);
  if (section.placed.size() == kMaxPlacedAtOnce) section.placed.erase(section.placed.begin());
  section.placed.push_back(index);
}

/// Where lines of two processes are mixed, a part belongs to the loop that it fits best.
void LoopSections::take_part(OpenSection& section, std::string_view part, Address address,
                             const Location& where, Diagnostics& problems) {
  const bool is_begin = part == "function" || part == "jump target";
  if (!is_begin && part != "end") return;
  std::uint32_t best = kNone;
  std::uint64_t least = UINT64_MAX;
  for (const std::uint32_t index : section.placed) {
    const AddressRange& range = all[index].code;
    const Address edge = is_begin ? range.begin : range.begin + range.size;
    const std::uint64_t distance = is_begin ? edge - address : address - edge;
    if (distance < least) {
      least = distance;
      best = index;
    }
  }
  if (best == kNone) return;
  if (least > kMaxCode) {
    problems.add(rule::kOddCode, where, "the addresses of " + all[best].name + " make no sense");
    all[best].code = {};
    return;
  }
  AddressRange& range = all[best].code;
  const Address end = is_begin ? range.begin + range.size : address;
  const Address begin = is_begin ? address : range.begin;
  range = AddressRange::clamped(begin, end - begin);
}

void LoopSections::begin_operations(OpenSection& section, std::string_view name,
                                    std::string_view type) {
  std::uint32_t index = names.find(name);
  if (index == kNone || !all[index].operations.empty()) index = names.add(name, all);
  CompiledLoop& loop = all[index];
  loop.name = name;
  loop.type = type;
  loop.thread = section.thread;
  if (loop.compiled == PypylogTick{}) loop.compiled = section.tick;
  adopt(index);
  section.loop = index;
}

void LoopSections::take_operation(OpenSection& section, std::string_view line) {
  if (const auto title = parse_operations_title(line)) {
    begin_operations(section, title->name, title->type);
    return;
  }
  if (section.loop == kNone) return;
  const auto parsed = parse_operation_line(line);
  if (!parsed) return;
  CompiledLoop& loop = all[section.loop];
  if (!parsed->place.empty() && loop.function.empty()) {
    const PypyPlace place = parse_pypy_place(parsed->place);
    loop.function = place.function;
    loop.file = place.file;
    loop.first_line = place.first_line;
    loop.line = place.line;
  }
  if (parsed->guard != 0) add_guard(section.loop, parsed->guard, parsed->operation);
  if (parsed->token == 0) return;
  if (parsed->operation == "label") {
    labels_[parsed->token] = {section.loop, static_cast<std::uint32_t>(loop.labels.size())};
    loop.labels.push_back({parsed->token});
  } else {
    loop.jumps_to = parsed->token;
    settle_jump(section.loop);
  }
}

void LoopSections::add_guard(std::uint32_t index, Address address, std::string_view operation) {
  std::vector<CompiledLoop::Guard>& guards = all[index].guards;
  guards_[address] = {index, static_cast<std::uint32_t>(guards.size())};
  guards.push_back({address, std::string(operation)});
  const std::uint32_t bridge = names.find_bridge(address);
  if (bridge != kNone && all[bridge].owner == kNone && bridge != index) adopt(bridge);
}

/// Finds out whose guard a bridge goes out of.
void LoopSections::adopt(std::uint32_t bridge) {
  CompiledLoop& child = all[bridge];
  if (child.kind != CompiledLoop::Kind::bridge || child.owner != kNone) return;
  const auto found = guards_.find(child.id);
  if (found == guards_.end() || found->second.loop == bridge) return;
  CompiledLoop& owner = all[found->second.loop];
  child.owner = found->second.loop;
  child.loop = owner.kind == CompiledLoop::Kind::loop ? child.owner : owner.loop;
  owner.guards[found->second.guard].bridge = bridge;
  settle_jump(bridge);
}

void LoopSections::settle_jump(std::uint32_t index) {
  CompiledLoop& loop = all[index];
  if (loop.kind != CompiledLoop::Kind::bridge || loop.jumps_to == 0) return;
  const auto target = labels_.find(loop.jumps_to);
  loop.is_inner = target != labels_.end() && loop.loop != kNone && target->second.loop == loop.loop;
}

std::uint32_t LoopSections::find_or_add(std::string_view name) {
  const std::size_t before = all.size();
  const std::uint32_t index = names.find_or_add(name, all);
  if (all.size() != before) adopt(index);
  return index;
}

/// Whether `entered`, whose entries were just counted, has the number of the loop that has a label,
/// and is another: two processes share the log, and the later is meant.
bool LoopSections::is_meant_instead(std::uint32_t entered, std::uint32_t labelled) const {
  return entered != kNone && entered != labelled && all[entered].kind == all[labelled].kind &&
         all[entered].id == all[labelled].id;
}

void LoopSections::take_count(OpenSection& section, std::string_view line) {
  const auto parsed = parse_count_line(line);
  if (!parsed) return;
  if (parsed->of == CountLine::Of::bridge) {
    const std::uint32_t bridge = names.find_bridge(parsed->id);
    section.loop = bridge != kNone ? bridge : find_or_add("bridge " + std::to_string(parsed->id));
    all[section.loop].entries = parsed->count;
  } else if (parsed->of == CountLine::Of::entry) {
    const std::uint32_t loop = names.find_loop(parsed->id);
    section.loop = loop != kNone ? loop : names.add("Loop " + std::to_string(parsed->id), all);
    all[section.loop].entries = parsed->count;
  } else if (const auto known = labels_.find(parsed->id);
             known != labels_.end() && !is_meant_instead(section.loop, known->second.loop)) {
    all[known->second.loop].labels[known->second.label].count = parsed->count;
  } else if (section.loop != kNone) {
    all[section.loop].labels.push_back({parsed->id, parsed->count});  // of the entry before it
  }
}

}  // namespace

}  // namespace loops

using loops::OpenSection;
using loops::Telling;

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

struct CompiledLoops::State {
  bool keep_code_bytes = false;
  loops::LoopSections sections;
  std::vector<OpenSection> open;  // a few

  Telling telling_of(std::string_view category) const noexcept {
    const Telling telling = loops::telling_of(category);
    return telling == Telling::code && !keep_code_bytes ? Telling::nothing : telling;
  }
  OpenSection* section_of(std::uint32_t thread) noexcept {
    const auto found = std::find_if(open.rbegin(), open.rend(), [&](const OpenSection& section) {
      return section.thread == thread;
    });
    return found == open.rend() ? nullptr : &*found;
  }
};

CompiledLoops::CompiledLoops(bool keep_code_bytes) : state_(std::make_unique<State>()) {
  state_->keep_code_bytes = keep_code_bytes;
}
CompiledLoops::CompiledLoops(CompiledLoops&&) noexcept = default;
CompiledLoops& CompiledLoops::operator=(CompiledLoops&&) noexcept = default;
CompiledLoops::~CompiledLoops() = default;

bool CompiledLoops::wants(std::string_view category) const noexcept {
  return state_->telling_of(category) != Telling::nothing;
}

// Where the same section is open twice, as two processes write it at once, their lines are mixed.
void CompiledLoops::begin(const PypylogEvent& opened) {
  const Telling telling = state_->telling_of(opened.text);
  if (telling == Telling::nothing) return;
  OpenSection* const section = state_->section_of(opened.thread);
  if (section != nullptr && section->telling == telling) {
    ++section->depth;
  } else {
    state_->open.push_back(
        {.telling = telling, .thread = opened.thread, .tick = opened.tick, .placed = {}});
  }
}

void CompiledLoops::end(const PypylogEvent& closed) {
  OpenSection* const section = state_->section_of(closed.thread);
  if (section == nullptr || section->telling != state_->telling_of(closed.text)) return;
  if (--section->depth == 0)
    state_->open.erase(state_->open.begin() + (section - state_->open.data()));
}

bool CompiledLoops::take(const PypylogEvent& text, Diagnostics& problems) {
  if (state_->open.empty()) return false;
  Location where{text.offset, text.line, 1};
  std::string_view rest = text.text;
  while (!rest.empty()) {
    const std::size_t newline = rest.find('\n');
    const std::size_t size = newline == std::string_view::npos ? rest.size() : newline + 1;
    const std::string_view whole = rest.substr(0, size);
    if (OpenSection* const section = state_->section_of(pypylog_thread(whole))) {
      const std::string_view line = plain_pypylog_line(whole);
      const auto before = static_cast<std::uint64_t>(line.data() - whole.data());
      state_->sections.take(*section, line, where.offset + before, size - before, where, problems);
    }
    where.offset += size;
    ++where.line;
    rest.remove_prefix(size);
  }
  return true;
}

std::span<const CompiledLoop> CompiledLoops::all() const noexcept { return state_->sections.all; }
std::span<const CodeBytes> CompiledLoops::code_bytes() const noexcept {
  return state_->sections.code;
}

std::uint32_t CompiledLoops::find_or_add(std::string_view name) {
  return state_->sections.find_or_add(name);
}

std::uint32_t CompiledLoops::latest(std::uint32_t loop) const noexcept {
  return state_->sections.names.latest(loop);
}

std::uint32_t CompiledLoops::named_by(std::string_view line) {
  return find_or_add(event_name(plain_pypylog_line(line)));
}

std::uint32_t CompiledLoops::find(std::string_view name) const {
  const loops::LoopNames& names = state_->sections.names;
  std::uint32_t found = names.find(name);
  if (found == CompiledLoop::kNone) found = names.find("Loop " + std::string(name));
  if (found == CompiledLoop::kNone) found = names.find("bridge " + std::string(name));
  if (found == CompiledLoop::kNone) found = names.find("bridge 0x" + std::string(name));
  if (found != CompiledLoop::kNone) return found;
  const auto called = std::find_if(all().begin(), all().end(), [&](const CompiledLoop& loop) {
    return loop.function == name && !name.empty();
  });
  return called == all().end() ? CompiledLoop::kNone
                               : static_cast<std::uint32_t>(called - all().begin());
}

}  // namespace perfmap
