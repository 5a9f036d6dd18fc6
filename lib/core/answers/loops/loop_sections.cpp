#include "answers/loops/loop_sections.hpp"

#include <algorithm>

#include "formats/pypy_lines.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::loops {
namespace {

constexpr std::uint32_t kNone = CompiledLoop::kNone;
constexpr std::uint64_t kMostCode = std::uint64_t{1} << 30;
constexpr std::size_t kMostPlacedAtOnce = 16;

}  // namespace

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
  if (line.end < line.begin || line.end - begin > kMostCode) {
    problems.add(rule::kOddCode, where, "the addresses of " + loop.name + " make no sense");
  } else {
    loop.code = AddressRange::clamped(begin, line.end - begin);
    loop.operations_end = loop.code.end();
  }
  adopt(index);
  if (section.placed.size() == kMostPlacedAtOnce) section.placed.erase(section.placed.begin());
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
  if (least > kMostCode) {
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

}  // namespace perfmap::loops
