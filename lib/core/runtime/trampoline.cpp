#include "perfmap/trampoline.hpp"

#include <cerrno>
#include <utility>

#include "perfmap/visible.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/trampoline_engine.hpp"

namespace perfmap {

struct Trampoline::Code {
  explicit Code(TrampolineEngine& made_by) noexcept : engine(&made_by) {}
  ~Code() { engine->forget(compiled); }
  TrampolineEngine* engine;
  CompiledCode compiled;
};

Trampoline::Trampoline() noexcept = default;
Trampoline::Trampoline(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Trampoline::Trampoline(Trampoline&&) noexcept = default;
Trampoline& Trampoline::operator=(Trampoline&&) noexcept = default;
Trampoline::~Trampoline() = default;

TrampolineEntry Trampoline::entry() noexcept {
  return code_ == nullptr ? nullptr : code_->engine->entry(code_->compiled);
}

namespace {

/// Apart from the usual way, which has no need for a frame of its own then.
[[gnu::noinline, gnu::cold]] void* call_newly(Trampoline& trampoline, void* first, void* second,
                                              void* third, Evaluator evaluator) {
  const TrampolineEntry made = trampoline.entry();
  if (made == nullptr) return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

}  // namespace

void* Trampoline::call(void* first, void* second, void* third, Evaluator evaluator) {
  if (code_ == nullptr) return evaluator(first, second, third);
  const TrampolineEngine& engine = *code_->engine;
  const CompiledCode& compiled = code_->compiled;
  if (!engine.is_settled(compiled)) [[unlikely]]
    return call_newly(*this, first, second, third, evaluator);
  const TrampolineEntry made = compiled.entry.load(std::memory_order_relaxed);
  if (made == nullptr) [[unlikely]]
    return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

Result<void> Trampoline::compile() {
  const int error = code_ == nullptr ? 0 : code_->engine->compile(code_->compiled);
  if (error == 0) return {};
  std::string what = "cannot make a trampoline for ";
  append_visible(what, code_->compiled.name);
  return Failure(system_error(what, error));
}

struct TrampolineArena::State {
  State(const TrampolineCode& code, const TrampolineOptions& options) : engine(code, options) {}
  TrampolineEngine engine;
};

TrampolineArena::TrampolineArena(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrampolineArena::TrampolineArena(TrampolineArena&&) noexcept = default;
TrampolineArena& TrampolineArena::operator=(TrampolineArena&&) noexcept = default;
TrampolineArena::~TrampolineArena() = default;

Result<TrampolineArena> TrampolineArena::make(const TrampolineOptions& options) {
  const TrampolineCode* const code = host_trampoline();
  if (code == nullptr) {
    return Failure({Errc::unsupported, "no trampolines for this machine", ENOTSUP, {}});
  }
  if (const int error = ForkGuard::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  return TrampolineArena(std::make_unique<State>(*code, options));
}

Result<void> TrampolineArena::activate(TrampolineBackend backend) {
  return state_->engine.activate(backend);
}
void TrampolineArena::deactivate() noexcept { state_->engine.deactivate(); }
TrampolineState TrampolineArena::state() const noexcept { return state_->engine.state(); }

Trampoline TrampolineArena::add(const CodeDescription& description) {
  auto code = std::make_unique<Trampoline::Code>(state_->engine);
  std::string& name = code->compiled.name;
  const std::string& prefix = state_->engine.options().prefix;
  if (!prefix.empty()) name.append(prefix).append("::");
  name.append(description.qualified_name);
  if (!description.file.empty()) name.append(":").append(description.file);
  code->compiled.file = description.file;
  code->compiled.line = description.first_line;
  return Trampoline(std::move(code));
}

}  // namespace perfmap
