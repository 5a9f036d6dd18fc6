#include "perfmap/compiled_loops.hpp"

#include <algorithm>

#include "answers/loops/loop_sections.hpp"
#include "formats/pypy_lines.hpp"

namespace perfmap {

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
