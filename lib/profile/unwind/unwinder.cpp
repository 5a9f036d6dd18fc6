#include "perfmap/unwinder.hpp"

#include "unwind/walk.hpp"

namespace perfmap {

struct Unwinder::State {
  Options options;
  RuleCache rules;
  JitCfi jit;
  Statistics statistics;

  template <class Arch>
  StackEnd walk(const UserSample& sample, const UnwindSpace& space,
                std::vector<UnwoundFrame>& frames) {
    return Walk<Arch>(options, rules, jit, sample, space.state(), frames).run();
  }
};

Unwinder::Unwinder() : Unwinder(Options()) {}
Unwinder::Unwinder(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Unwinder::Unwinder(Unwinder&&) noexcept = default;
Unwinder& Unwinder::operator=(Unwinder&&) noexcept = default;
Unwinder::~Unwinder() = default;

const Unwinder::Statistics& Unwinder::statistics() const noexcept { return state_->statistics; }

StackEnd Unwinder::unwind(const UserSample& sample, const UnwindSpace& space,
                          std::vector<UnwoundFrame>& frames) {
  const std::size_t before = frames.size();
  StackEnd end = StackEnd::no_info;
  switch (sample.registers.machine) {
    case Machine::x86_64: end = state_->walk<X86_64>(sample, space, frames); break;
    case Machine::aarch64: end = state_->walk<Aarch64>(sample, space, frames); break;
    case Machine::x86:
      if (sample.registers.has(X86_64::kPerfPc)) {
        frames.push_back(
            {sample.registers.values[X86_64::kPerfPc], 0, FrameSource::initial, false});
      }
      break;
    case Machine::arm:
      if (sample.registers.has(15)) {
        frames.push_back({sample.registers.values[15], 0, FrameSource::initial, false});
      }
      break;
  }
  state_->statistics.frames += frames.size() - before;
  state_->statistics.rules = state_->rules.made();
  return end;
}

}  // namespace perfmap
