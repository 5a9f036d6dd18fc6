#include <algorithm>

#include "perfmap/source_kind.hpp"
#include "processes/jit_state.hpp"
#include "processes/start_time.hpp"

namespace perfmap {
namespace {

FileId key_of(const Input& input) noexcept { return {input.facts().device, input.facts().inode}; }

}  // namespace

const Input& JitSource::input() const noexcept {
  return is_map() ? std::get<Map>(file).input() : std::get<Jitdump>(file).input();
}

Result<Growth> JitSource::refresh() {
  Result<Growth> growth =
      is_map() ? std::get<Map>(file).refresh() : std::get<Jitdump>(file).refresh();
  if (growth && *growth == Growth::replaced) former_bytes = 0;
  return growth;
}

bool JitSources::State::look(const ProcSource& process) {
  Result<Input> map = find_process_map(process.pid(), options.roots, options.any_owner);
  ProcessDumps dumps = find_process_dumps(process.pid(), options.roots, options.any_owner);
  // Both know the process by its pid alone: it had that all the time if it has it now.
  if (!process.is_alive()) return false;
  refused = std::move(dumps.refused);
  if (!map && map.error().code != Errc::not_found) refused.push_back(std::move(map.error()));
  std::vector<Input> found = std::move(dumps.dumps);
  if (map) found.push_back(*std::move(map));
  const std::int64_t start = start_time_ns(process, options.roots.proc);
  found_now.clear();
  for (Input& input : found) {
    if (is_older(input.facts(), start)) {
      refused.push_back(
          {Errc::refused, "cannot use " + input.name() + ": it is older than the process", 0, {}});
    } else {
      opened->insert_or_assign(key_of(input), input);
      found_now.push_back(std::move(input));
    }
  }
  return true;
}

JitSource JitSources::State::source_of(const Input& input) const {
  Input copy = input;
  // One that is not there any more goes on as it was opened last.
  copy.look_again_with(
      [opened = opened, key = key_of(input)]() -> Result<Input> { return opened->at(key); });
  if (detect_kind(copy.text()) == SourceKind::jitdump) {
    return {Jitdump(std::move(copy), {.growing = true})};
  }
  return {Map(std::move(copy), {.growing = true})};
}

JitSource JitSources::State::after_former(JitSource made) const {
  if (options.former == nullptr) return made;
  for (const JitSource& one : options.former->state_->sources) {
    if (key_of(one.input()) != key_of(made.input())) continue;
    Input now = made.input();
    Input then = one.input();
    then.look_again_with([now]() -> Result<Input> { return now; });
    const Result<Growth> growth = then.refresh();
    const bool anew = growth && *growth == Growth::replaced;
    made.former_bytes = anew ? 0 : now.text().size();
  }
  return made;
}

bool JitSources::State::has(FileId key) const noexcept {
  return std::any_of(sources.begin(), sources.end(),
                     [key](const JitSource& one) { return key_of(one.input()) == key; });
}

bool JitSources::State::take_new() {
  bool is_new = false;
  for (const Input& input : found_now) {
    if (has(key_of(input))) continue;
    // Another file in the place of one that we know.
    std::erase_if(sources,
                  [&input](const JitSource& one) { return one.input().name() == input.name(); });
    sources.push_back(after_former(source_of(input)));
    is_new = true;
  }
  found_now.clear();
  std::erase_if(*opened, [this](const auto& one) { return !has(one.first); });
  return is_new;
}

void JitSources::State::build() {
  std::stable_partition(sources.begin(), sources.end(),
                        [](const JitSource& one) { return one.is_map(); });
  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
  for (const JitSource& one : sources) {
    if (one.is_map()) {
      maps.push_back(std::get<Map>(one.file));
    } else {
      dumps.push_back(std::get<Jitdump>(one.file));
    }
  }
  resolver.emplace(std::move(maps), std::move(dumps), options.overlap, problems, problems);
}

}  // namespace perfmap
