// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "base/found_file.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "process/proc_text.hpp"

namespace perfmap {

/// Device and inode.
using FileId = std::pair<std::uint64_t, std::uint64_t>;
/// The sources of a process as last opened, to be reused by a later search.
using OpenedFiles = std::map<FileId, Input>;

/// A map or a dump, and how much of its beginning belongs to a former program.
struct JitSource {
  std::variant<Map, Jitdump> file;
  std::uint64_t former_bytes = 0;

  bool is_map() const noexcept { return std::holds_alternative<Map>(file); }
  const Input& input() const noexcept;
  Result<Growth> refresh();
};

struct JitSources::State {
  Options options;
  bool looks_for_files = false;
  std::shared_ptr<OpenedFiles> opened = std::make_shared<OpenedFiles>();
  std::vector<Input> found_now;    // found by look(), for take_new()
  std::vector<JitSource> sources;  // maps first, in the resolver's numbering
  std::vector<Error> refused;
  Doubts doubts;  // apply to every name
  std::optional<Resolver> resolver;
  Diagnostics problems{1};

  /// Opens the current files; false if the process no longer exists: then the result is invalid.
  bool look(const ProcSource& process);
  /// Adds the new files that look() found; returns whether there were any.
  bool take_new();
  std::set<FileId> keys() const;
  JitSource source_of(const Input& input) const;
  JitSource after_former(JitSource made) const;
  void build();
};

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
  // Both were found by pid alone: if the process is alive now, it had the pid all the time.
  if (!process.is_alive()) return false;
  refused = std::move(dumps.refused);
  if (!map && map.error().code != Errc::not_found) refused.push_back(std::move(map.error()));
  std::vector<Input> found = std::move(dumps.dumps);
  if (map) found.push_back(*std::move(map));
  found_now.clear();
  for (Input& input : found) {
    if (is_older_than(process, options.roots.proc, input.facts())) {
      refused.push_back(Error::cannot("use", input.name(), Reason::older_than_process));
    } else {
      opened->insert_or_assign(key_of(input), input);
      found_now.push_back(std::move(input));
    }
  }
  return true;
}

JitSource JitSources::State::source_of(const Input& input) const {
  Input copy = input;
  // A deleted file continues with its last opened version.
  copy.reopen_with(
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
    then.reopen_with([now]() -> Result<Input> { return now; });
    const Result<Growth> growth = then.refresh();
    const bool anew = growth && *growth == Growth::replaced;
    made.former_bytes = anew ? 0 : now.text().size();
  }
  return made;
}

std::set<FileId> JitSources::State::keys() const {
  std::set<FileId> keys;
  for (const JitSource& one : sources) keys.insert(key_of(one.input()));
  return keys;
}

bool JitSources::State::take_new() {
  std::set<FileId> known = keys();
  std::unordered_set<std::string> new_names;
  for (const Input& input : found_now) {
    if (!known.contains(key_of(input))) new_names.insert(input.name());
  }
  // Removes known sources whose path now holds another file.
  std::erase_if(sources,
                [&](const JitSource& one) { return new_names.contains(one.input().name()); });
  known = keys();
  for (const Input& input : found_now) {
    if (known.insert(key_of(input)).second) sources.push_back(after_former(source_of(input)));
  }
  found_now.clear();
  std::erase_if(*opened, [&](const auto& one) { return !known.contains(one.first); });
  return !new_names.empty();
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

JitSources::JitSources(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
JitSources::JitSources(JitSources&&) noexcept = default;
JitSources& JitSources::operator=(JitSources&&) noexcept = default;
JitSources::~JitSources() = default;

const Diagnostics& JitSources::problems() const noexcept { return state_->problems; }

JitSources::JitSources(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap,
                       Doubts doubts)
    : state_(std::make_unique<State>()) {
  state_->options.overlap = overlap;
  state_->doubts = doubts;
  for (Map& map : maps) state_->sources.push_back({std::move(map)});
  for (Jitdump& dump : dumps) state_->sources.push_back({std::move(dump)});
  state_->build();
}

Result<std::optional<JitSources>> JitSources::find(const ProcSource& process, Options options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->looks_for_files = true;
  if (!state->look(process)) return std::nullopt;
  state->take_new();
  state->build();
  // The former program's files were compared, and are no longer needed.
  state->options.former.reset();
  return JitSources(std::move(state));
}

bool JitSources::empty() const noexcept { return state_->sources.empty(); }
const Resolver& JitSources::resolver() const noexcept { return *state_->resolver; }
Resolver& JitSources::resolver() noexcept { return *state_->resolver; }
std::span<const Error> JitSources::refused() const noexcept { return state_->refused; }

Resolution JitSources::find(const Query& query) const noexcept {
  Resolution answer = state_->resolver->find(query);
  if (!answer.found) return answer;
  answer.found->doubts.add(state_->doubts);
  if (answer.found->offset >= state_->sources[answer.found->source].former_bytes) return answer;
  return {};
}

Result<Growth> JitSources::refresh(const ProcSource* process) {
  State& state = *state_;
  if (state.looks_for_files) {
    if (process == nullptr || !state.look(*process)) return Growth::unchanged;
    if (state.take_new()) {
      for (JitSource& one : state.sources) static_cast<void>(one.refresh());
      state.build();
      return Growth::replaced;
    }
  }
  for (JitSource& one : state.sources) {
    if (Result<Growth> growth = one.refresh(); !growth) return growth;
  }
  return state.resolver->refresh(state.problems, state.problems);
}

}  // namespace perfmap
