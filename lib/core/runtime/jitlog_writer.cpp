#include "perfmap/jitlog_writer.hpp"

#include <cerrno>

#include "runtime/jitlog_engine.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

Error failed(const std::string& what, int sys_errno) {
  Error error = system_error(what, sys_errno);
  if (sys_errno == EILSEQ) error.code = Errc::invalid_argument;
  return error;
}

}  // namespace

struct JitlogWriter::State {
  explicit State(std::shared_ptr<JitlogEngine> made) noexcept : engine(std::move(made)) {}
  ~State() { engine->close(); }
  State(const State&) = delete;
  const std::shared_ptr<JitlogEngine> engine;
};

JitlogWriter::JitlogWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitlogWriter::JitlogWriter(JitlogWriter&&) noexcept = default;
JitlogWriter& JitlogWriter::operator=(JitlogWriter&&) noexcept = default;
JitlogWriter::~JitlogWriter() = default;

namespace {

Result<std::shared_ptr<JitlogEngine>> make_engine(const JitlogOptions& options) {
  const JitlogTicks ticks(options.clock);
  if (!ticks.exists()) {
    return Failure({Errc::unsupported, "no counter of this machine is known", ENOTSUP, {}});
  }
  if (const int error = ForkGuard::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  auto engine = std::make_shared<JitlogEngine>(options, ticks);
  Registry::get().add(engine.get());
  return engine;
}

}  // namespace

Result<JitlogWriter> JitlogWriter::open(const std::string& path, const JitlogOptions& options) {
  auto engine = make_engine(options);
  if (!engine) return Failure(std::move(engine).error());
  Result<void> opened = (*engine)->open(path);
  if (!opened) return Failure(std::move(opened).error());
  return JitlogWriter(std::make_unique<State>(*std::move(engine)));
}

Result<JitlogWriter> JitlogWriter::to_descriptor(int fd, std::string name,
                                                 const JitlogOptions& options) {
  auto engine = make_engine(options);
  if (!engine) return Failure(std::move(engine).error());
  Result<void> opened = (*engine)->open(fd, name);
  if (!opened) return Failure(std::move(opened).error());
  return JitlogWriter(std::make_unique<State>(*std::move(engine)));
}

Result<JitlogLoop> JitlogWriter::loop(std::string_view name) {
  JitlogLoop loop = 0;
  const int error = state_->engine->loop(name, loop);
  if (error != 0) return Failure(failed("cannot name a loop in " + path(), error));
  return loop;
}

int JitlogWriter::enter(JitlogLoop loop) noexcept { return state_->engine->record(loop, false); }
int JitlogWriter::exit(JitlogLoop loop) noexcept { return state_->engine->record(loop, true); }

Result<void> JitlogWriter::flush() {
  const int error = state_->engine->flush();
  if (error == 0) return {};
  return Failure(failed("cannot write " + path(), error));
}

Result<void> JitlogWriter::close() {
  const int error = state_->engine->close();
  if (error == 0) return {};
  return Failure(failed("cannot write " + path(), error));
}

std::uint64_t JitlogWriter::lost() const noexcept { return state_->engine->lost(); }
std::string JitlogWriter::path() const { return state_->engine->path(); }

}  // namespace perfmap
