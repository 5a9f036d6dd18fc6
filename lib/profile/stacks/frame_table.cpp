#include <cstring>

#include "perfmap/stack_sample.hpp"
#include "stacks/interning.hpp"

namespace perfmap {

std::string_view StringPool::copy(std::string_view text) {
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  if (text.empty()) return "";
  char* place = nullptr;
  if (text.size() > kChunk / 8) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    place = chunks_.back().get();
  } else {
    if (text.size() > left_) {
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunk));
      free_ = chunks_.back().get();
      left_ = kChunk;
    }
    place = free_;
    free_ += text.size();
    left_ -= text.size();
  }
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

namespace {

struct HashOf {
  std::size_t operator()(const FrameFunction& function) const noexcept {
    return Hash()
        .add(function.name)
        .add(function.system_name)
        .add(function.module)
        .add(function.file)
        .add(function.tier)
        .add(static_cast<std::uint64_t>(function.kind))
        .value();
  }
  std::size_t operator()(const FrameMapping& mapping) const noexcept {
    return Hash()
        .add(mapping.range.begin)
        .add(mapping.range.size)
        .add(mapping.offset)
        .add(mapping.path)
        .add(mapping.build_id)
        .value();
  }
  std::size_t operator()(const FramePlace& place) const noexcept {
    return Hash()
        .add(std::uint64_t{place.function} << 32 | place.mapping)
        .add(std::uint64_t{place.line} << 32 | place.column)
        .add(place.offset)
        .add(place.map_address)
        .add(place.vaddr)
        .add(std::uint64_t{place.doubts.bits})
        .value();
  }
};

}  // namespace

std::string_view to_string(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::unknown: return "unknown";
    case FrameKind::native: return "native";
    case FrameKind::inlined: return "inlined";
    case FrameKind::jit: return "jit";
    case FrameKind::kernel: return "kernel";
  }
  return "";
}

Doubts doubts_of(const StackFrame& frame, const FramePlace& place) noexcept {
  Doubts doubts = place.doubts;
  if (frame.source == FrameSource::scan) doubts.add(Doubt::scanned_frame);
  if (frame.source == FrameSource::stitched) doubts.add(Doubt::stitched_frame);
  return doubts;
}

struct FrameTable::State {
  State() {
    functions.add({});
    mappings.add({});
    places.add({});
  }

  StringPool strings;
  Numbered<FrameFunction, HashOf> functions;
  Numbered<FrameMapping, HashOf> mappings;
  Numbered<FramePlace, HashOf> places;
};

FrameTable::FrameTable() : state_(std::make_unique<State>()) {}
FrameTable::FrameTable(FrameTable&&) noexcept = default;
FrameTable& FrameTable::operator=(FrameTable&&) noexcept = default;
FrameTable::~FrameTable() = default;

std::uint32_t FrameTable::add(const FrameFunction& function) {
  return state_->functions.find_or_make(function, [&] {
    StringPool& strings = state_->strings;
    return FrameFunction{.name = strings.keep(function.name),
                         .system_name = strings.keep(function.system_name),
                         .module = strings.keep(function.module),
                         .file = strings.keep(function.file),
                         .tier = strings.keep(function.tier),
                         .kind = function.kind};
  });
}

std::uint32_t FrameTable::add(const FrameMapping& mapping) {
  return state_->mappings.find_or_make(mapping, [&] {
    FrameMapping kept = mapping;
    kept.path = state_->strings.keep(mapping.path);
    kept.build_id = state_->strings.keep(mapping.build_id);
    return kept;
  });
}

std::uint32_t FrameTable::add(const FramePlace& place) { return state_->places.add(place); }

const FrameFunction& FrameTable::function(std::uint32_t number) const noexcept {
  return state_->functions[number];
}
const FrameMapping& FrameTable::mapping(std::uint32_t number) const noexcept {
  return state_->mappings[number];
}
const FramePlace& FrameTable::place(std::uint32_t number) const noexcept {
  return state_->places[number];
}

std::size_t FrameTable::functions() const noexcept { return state_->functions.size(); }
std::size_t FrameTable::mappings() const noexcept { return state_->mappings.size(); }
std::size_t FrameTable::places() const noexcept { return state_->places.size(); }

}  // namespace perfmap
