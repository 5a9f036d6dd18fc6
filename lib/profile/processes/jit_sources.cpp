#include "perfmap/jit_sources.hpp"

#include "processes/jit_state.hpp"

namespace perfmap {

JitSources::JitSources(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
JitSources::JitSources(JitSources&&) noexcept = default;
JitSources& JitSources::operator=(JitSources&&) noexcept = default;
JitSources::~JitSources() = default;

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
  // What a former program had was compared, and needs not be kept for it.
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
