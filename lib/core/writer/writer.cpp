// SPDX-License-Identifier: MIT
// The C++ interface of the engines: turns errno values into Result, and adds strings and objects.

#include "perfmap/writer.hpp"

#include <cerrno>
#include <new>
#include <string>

#include "writer/engines.hpp"
#include "writer/messages.hpp"
#include "writer/process_map.hpp"
#include "writer/trampoline.hpp"

namespace perfmap {
namespace {

Error error_of(const WriterMessage& message) {
  Error error = Error::told(static_cast<Errc>(message.status), message.text);
  error.sys_errno = message.sys_errno;
  error.reason = static_cast<Reason>(message.reason);
  error.path = message.path;
  return error;
}

/// The result of a call on the file of an engine.
Result<void> result_of(ForkSafeFile& file, const char* what, int sys_errno) {
  if (sys_errno == 0) [[likely]]
    return {};
  char path[ForkSafeFile::kMaxPath];
  file.copy_path(path);
  return Failure(error_of(message_of(what, path, sys_errno)));
}

std::string path_of(ForkSafeFile& file) {
  char path[ForkSafeFile::kMaxPath];
  file.copy_path(path);
  return path;
}

/// `given`: how to name a file whose path is too long.
std::string path_of(ForkSafeFile& file, const std::string& given) {
  const std::string path = path_of(file);
  return path.empty() ? given : path;
}

Error no_fork_handlers(int sys_errno) {
  return error_of(message_of("cannot prepare for", "fork", sys_errno));
}

}  // namespace

struct MapWriter::State {
  MapEngine engine;
};

MapWriter::MapWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
MapWriter::MapWriter(MapWriter&&) noexcept = default;
MapWriter& MapWriter::operator=(MapWriter&&) noexcept = default;
MapWriter::~MapWriter() = default;

template <class Open>
Result<MapWriter> MapWriter::make(const std::string& name, const WriterOptions& options,
                                  Open open) {
  auto state = std::make_unique<State>();
  state->engine.join_list();
  state->engine.set_options(options);
  const int error = open(state->engine);
  if (error != 0) return Failure(error_of(message_of("cannot open", name.c_str(), error)));
  return MapWriter(std::move(state));
}

Result<MapWriter> MapWriter::open(const std::string& path, const WriterOptions& options) {
  return make(path, options, [&](MapEngine& engine) { return engine.open(path.c_str()); });
}

Result<MapWriter> MapWriter::to_descriptor(int fd, std::string name, const WriterOptions& options) {
  return make(name, options, [&](MapEngine& engine) { return engine.open(fd, name.c_str()); });
}

Result<void> MapWriter::write(Address start, std::uint64_t size, std::string_view name) {
  return result_of(state_->engine, "cannot write", state_->engine.write(start, size, name));
}

Result<void> MapWriter::copy(const std::string& path) {
  const int error = state_->engine.copy(path.c_str());
  if (error == 0) return {};
  return Failure(error_of(copy_message(path.c_str(), path_of(state_->engine).c_str(), error)));
}

Result<void> MapWriter::flush() {
  return result_of(state_->engine, "cannot write", state_->engine.flush());
}
Result<void> MapWriter::close() {
  return result_of(state_->engine, "cannot close", state_->engine.close());
}
std::string MapWriter::path() const { return path_of(state_->engine); }

int ProcessMap::configure(const ProcessMapOptions& options) noexcept {
  return own_map::configure(options.directory, options.writer, options.stale, options.fork);
}
int ProcessMap::set_fork_policy(ForkPolicy policy) noexcept {
  return own_map::set_fork_policy(policy);
}
ForkPolicy ProcessMap::fork_policy() noexcept { return own_map::fork_policy(); }
ForkPolicy ProcessMap::began_as() noexcept { return own_map::began_as(); }
MapStart ProcessMap::start() noexcept { return own_map::start(); }
int ProcessMap::init() noexcept { return own_map::init(); }
int ProcessMap::write(Address start, std::uint64_t size, std::string_view name) noexcept {
  return own_map::write(start, size, name);
}
int ProcessMap::copy(const char* path) noexcept { return own_map::copy(path); }
int ProcessMap::flush() noexcept { return own_map::flush(); }
int ProcessMap::fini() noexcept { return own_map::fini(); }

struct JitdumpWriter::State {
  explicit State(const JitdumpOptions& options) : engine(options) {}
  DumpEngine engine;
};

JitdumpWriter::JitdumpWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitdumpWriter::JitdumpWriter(JitdumpWriter&&) noexcept = default;
JitdumpWriter& JitdumpWriter::operator=(JitdumpWriter&&) noexcept = default;
JitdumpWriter::~JitdumpWriter() = default;

template <class Open>
Result<JitdumpWriter> JitdumpWriter::make(const std::string& name, const JitdumpOptions& options,
                                          Open open) {
  if (const int error = ForkHandlers::install(); error != 0)
    return Failure(no_fork_handlers(error));
  auto state = std::make_unique<State>(options);
  state->engine.join_list();
  DumpFault fault;
  if (!open(state->engine, fault)) {
    return Failure(error_of(dump_message(fault, path_of(state->engine, name).c_str())));
  }
  return JitdumpWriter(std::move(state));
}

Result<JitdumpWriter> JitdumpWriter::open_own(const std::string& directory,
                                              const JitdumpOptions& options) {
  return make(directory, options, [&](DumpEngine& engine, DumpFault& fault) {
    return engine.open_own(directory, fault);
  });
}

Result<JitdumpWriter> JitdumpWriter::open(const std::string& path, const JitdumpOptions& options) {
  return make(path, options, [&](DumpEngine& engine, DumpFault& fault) {
    return engine.open(path.c_str(), fault);
  });
}

Result<JitdumpWriter> JitdumpWriter::to_descriptor(int fd, std::string name,
                                                   const JitdumpOptions& options) {
  return make(name, options, [&](DumpEngine& engine, DumpFault& fault) {
    return engine.open(fd, name.c_str(), fault);
  });
}

std::string JitdumpWriter::path() const { return path_of(state_->engine); }

Result<std::uint64_t> JitdumpWriter::load(const JitFunction& function, MapWriter* map) {
  std::uint64_t index = 0;
  bool in_map = false;
  const int error = state_->engine.load(function, index, in_map);
  if (error == EINVAL && !in_map) {
    return Failure(error_of(argument_message(state_->engine.what_is_wrong(function))));
  }
  if (error != 0) [[unlikely]] {
    const std::string where = in_map ? "the process's map" : path();
    return Failure(error_of(message_of("cannot write", where.c_str(), error)));
  }
  if (map != nullptr) {
    Result<void> written = map->write(function.start, function.size, function.name);
    if (!written) return Failure(std::move(written).error());
  }
  return index;
}

Result<void> JitdumpWriter::move(std::uint64_t code_index, Address from, Address to,
                                 std::uint64_t size) {
  const int error = state_->engine.move(code_index, from, to, size);
  if (error == EINVAL) {
    return Failure(error_of(argument_message(DumpEngine::what_is_wrong_with_move(from, to, size))));
  }
  return result_of(state_->engine, "cannot write", error);
}

Result<void> JitdumpWriter::close() {
  return result_of(state_->engine, "cannot close", state_->engine.close());
}

struct JitlogWriter::State {
  explicit State(JitlogEngine* made) noexcept : engine(made) {}
  ~State() {
    engine->close();
    engine->release();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  JitlogEngine* const engine;
};

JitlogWriter::JitlogWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitlogWriter::JitlogWriter(JitlogWriter&&) noexcept = default;
JitlogWriter& JitlogWriter::operator=(JitlogWriter&&) noexcept = default;
JitlogWriter::~JitlogWriter() = default;

template <class Open>
Result<JitlogWriter> JitlogWriter::make(const std::string& name, const JitlogOptions& options,
                                        Open open) {
  const JitlogTicks ticks(options.clock);
  if (!ticks.exists()) return Failure(error_of(no_counter_message()));
  if (const int error = ForkHandlers::install(); error != 0)
    return Failure(no_fork_handlers(error));
  JitlogEngine* const engine = JitlogEngine::make_engine(options, ticks);
  if (engine == nullptr) throw std::bad_alloc();
  auto state = std::make_unique<State>(engine);
  engine->join_list();
  const int error = open(*engine);
  if (error != 0) return Failure(error_of(log_message(path_of(*engine, name).c_str(), error)));
  return JitlogWriter(std::move(state));
}

Result<JitlogWriter> JitlogWriter::open(const std::string& path, const JitlogOptions& options) {
  return make(path, options, [&](JitlogEngine& engine) { return engine.open(path.c_str()); });
}

Result<JitlogWriter> JitlogWriter::to_descriptor(int fd, std::string name,
                                                 const JitlogOptions& options) {
  return make(name, options, [&](JitlogEngine& engine) { return engine.open(fd, name.c_str()); });
}

Result<JitlogLoop> JitlogWriter::loop(std::string_view name) {
  JitlogLoop loop = 0;
  const int error = state_->engine->loop(name, loop);
  if (error == 0) return loop;
  return Failure(error_of(message_of("cannot name a loop in", path().c_str(), error)));
}

int JitlogWriter::enter(JitlogLoop loop) noexcept { return state_->engine->record(loop, false); }
int JitlogWriter::exit(JitlogLoop loop) noexcept { return state_->engine->record(loop, true); }

Result<void> JitlogWriter::flush() {
  return result_of(*state_->engine, "cannot write", state_->engine->flush());
}
Result<void> JitlogWriter::close() {
  return result_of(*state_->engine, "cannot write", state_->engine->close());
}
std::uint64_t JitlogWriter::lost() const noexcept { return state_->engine->lost(); }
std::string JitlogWriter::path() const { return path_of(*state_->engine); }

struct TrampolineArena::State {
  State(const TrampolineCode& machine, const TrampolineOptions& options) noexcept
      : engine(machine, options.prefix, options.jitdump_directory, options.exceptions) {}
  TrampolineEngine engine;
};

struct Trampoline::Code {
  Code(TrampolineEngine& engine, const CodeDescription& code) noexcept : slot(engine, code) {}
  TrampolineSlot slot;
};

Trampoline::Trampoline() noexcept = default;
Trampoline::Trampoline(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Trampoline::Trampoline(Trampoline&&) noexcept = default;
Trampoline& Trampoline::operator=(Trampoline&&) noexcept = default;
Trampoline::~Trampoline() = default;

TrampolineEntry Trampoline::entry() noexcept {
  return code_ == nullptr ? nullptr : code_->slot.entry();
}

void* Trampoline::call(void* first, void* second, void* third, Evaluator evaluator) {
  if (code_ == nullptr) return evaluator(first, second, third);
  return code_->slot.call(first, second, third, evaluator);
}

Result<void> Trampoline::compile() {
  const int error = code_ == nullptr ? 0 : code_->slot.compile();
  if (error == 0) return {};
  return Failure(error_of(trampoline_message(code_->slot.name(), error)));
}

TrampolineArena::TrampolineArena(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrampolineArena::TrampolineArena(TrampolineArena&&) noexcept = default;
TrampolineArena& TrampolineArena::operator=(TrampolineArena&&) noexcept = default;
TrampolineArena::~TrampolineArena() = default;

Result<TrampolineArena> TrampolineArena::make(const TrampolineOptions& options) {
  const TrampolineCode* const machine = host_trampoline();
  if (machine == nullptr) return Failure(error_of(no_trampolines_message()));
  if (const int error = ForkHandlers::install(); error != 0) {
    return Failure(no_fork_handlers(error));
  }
  auto state = std::make_unique<State>(*machine, options);
  if (!state->engine.is_whole()) throw std::bad_alloc();
  return TrampolineArena(std::move(state));
}

Result<void> TrampolineArena::activate(TrampolineBackend backend) {
  TrampolineFault fault;
  if (state_->engine.activate(static_cast<std::uint32_t>(backend), fault)) return {};
  return Failure(error_of(activation_message(fault)));
}

void TrampolineArena::deactivate() noexcept { state_->engine.deactivate(); }
TrampolineState TrampolineArena::state() const noexcept { return state_->engine.state(); }

Trampoline TrampolineArena::add(const CodeDescription& description) {
  auto code = std::make_unique<Trampoline::Code>(state_->engine, description);
  if (!code->slot.is_whole()) throw std::bad_alloc();
  return Trampoline(std::move(code));
}

}  // namespace perfmap
