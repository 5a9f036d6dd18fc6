// The C++ interface of the engines: turns errno values into Result, and adds strings and objects.

#include "perfmap/writer.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "perfmap/jitdump.hpp"
#include "writer/engines.hpp"

namespace perfmap {
namespace {

/// `name`: how to name a file whose path is too long.
std::string path_of(ForkSafeFile& file, const std::string& name = {}) {
  char path[ForkSafeFile::kMaxPath];
  file.copy_path(path);
  return path[0] != '\0' ? path : name;
}

}  // namespace

struct MapWriter::State {
  MapEngine engine;
  std::string path;
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
  state->path = name;
  const int error = open(state->engine);
  if (error != 0) return Failure(system_error("cannot open " + name, error));
  return MapWriter(std::move(state));
}

Result<MapWriter> MapWriter::open(const std::string& path, const WriterOptions& options) {
  return make(path, options, [&](MapEngine& engine) { return engine.open(path.c_str()); });
}

Result<MapWriter> MapWriter::to_descriptor(int fd, std::string name, const WriterOptions& options) {
  return make(name, options, [&](MapEngine& engine) { return engine.open(fd); });
}

Result<void> MapWriter::result(std::string_view what, int sys_errno) const {
  if (sys_errno == 0) [[likely]]
    return {};
  return Failure(system_error(std::string(what) + state_->path, sys_errno));
}

Result<void> MapWriter::write(Address start, std::uint64_t size, std::string_view name) {
  return result("cannot write ", state_->engine.write(start, size, name));
}

Result<void> MapWriter::copy(const std::string& path) {
  const int error = state_->engine.copy(path.c_str());
  if (error == 0) return {};
  if (error == EINVAL) {
    return Failure({Errc::invalid_argument,
                    "cannot copy " + path + ": it is this very file, or no regular file",
                    error,
                    {}});
  }
  return Failure(system_error("cannot copy " + path + " to " + state_->path, error));
}

Result<void> MapWriter::flush() { return result("cannot write ", state_->engine.flush()); }
Result<void> MapWriter::close() { return result("cannot close ", state_->engine.close()); }

namespace {

std::uint64_t index_of(const JitRecord& record) noexcept {
  if (const auto load = decode_load(record)) return load->code_index;
  if (const auto move = decode_move(record)) return move->code_index;
  return 0;
}

int read_dump_end(int fd, const char* path, DumpEnd& end) try {
  Result<Input> input = Input::from_descriptor(fd, path);
  if (!input) return input.error().sys_errno;
  const Jitdump dump(*std::move(input), {.growing = true});
  Diagnostics ignored(0);
  Jitdump::Reader reader(dump);
  end.offset = dump.first_record();
  while (const std::optional<JitRecord> record = reader.next(ignored)) {
    end.last_index = std::max(end.last_index, index_of(*record));
    if (!record->is(JitRecordKind::close)) end.offset = record->end();
  }
  return 0;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

Error error_of(const DumpFault& fault, const std::string& path) {
  switch (fault.kind) {
    case DumpFault::Kind::open: break;
    case DumpFault::Kind::begin: return system_error("cannot begin " + path, fault.error);
    case DumpFault::Kind::append:
      return {Errc::bad_format, "cannot append to " + path + ": " + fault.why.data(), EINVAL, {}};
    case DumpFault::Kind::in_use:
      return {Errc::refused,
              "cannot append to " + path + ": process " + std::to_string(fault.pid) +
                  " has it open for writing",
              EBUSY,
              {}};
  }
  return system_error("cannot open " + path, fault.error);
}

Error dump_error(const std::string& what, int sys_errno) {
  Error error = system_error(what, sys_errno);
  if (sys_errno == EINVAL) error.code = Errc::invalid_argument;
  if (sys_errno == EOVERFLOW) error.code = Errc::too_large;
  return error;
}

Error no_fork_handlers(int sys_errno) { return system_error("cannot prepare for fork", sys_errno); }

}  // namespace

struct JitdumpWriter::State {
  explicit State(const JitdumpOptions& options) : engine(options, read_dump_end) {}
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
  if (!open(state->engine, fault)) return Failure(error_of(fault, path_of(state->engine, name)));
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
  const int error = state_->engine.load(function, index);
  if (error != 0) [[unlikely]]
    return Failure(dump_error("cannot write " + path(), error));
  if (state_->engine.options().process_map &&
      ProcessMap::write(function.start, function.size, function.name) != 0) {
    return Failure(system_error("cannot write the process's map", errno));
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
  if (error == 0) return {};
  return Failure(dump_error("cannot write " + path(), error));
}

Result<void> JitdumpWriter::close() {
  const int error = state_->engine.close();
  if (error == 0) return {};
  return Failure(dump_error("cannot close " + path(), error));
}

namespace {

Error log_error(const std::string& what, int sys_errno) {
  Error error = system_error(what, sys_errno);
  if (sys_errno == EILSEQ) error.code = Errc::invalid_argument;
  return error;
}

}  // namespace

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
  if (!ticks.exists()) {
    return Failure({Errc::unsupported, "no counter of this machine is known", ENOTSUP, {}});
  }
  if (const int error = ForkHandlers::install(); error != 0)
    return Failure(no_fork_handlers(error));
  JitlogEngine* const engine = JitlogEngine::make_engine(options, ticks);
  if (engine == nullptr) throw std::bad_alloc();
  auto state = std::make_unique<State>(engine);
  engine->join_list();
  const int error = open(*engine);
  if (error == EBADMSG) {
    return Failure({Errc::bad_format,
                    "cannot begin " + path_of(*engine, name) + ": it is no log",
                    EINVAL,
                    {}});
  }
  if (error != 0) return Failure(system_error("cannot open " + path_of(*engine, name), error));
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
  return Failure(log_error("cannot name a loop in " + path(), error));
}

int JitlogWriter::enter(JitlogLoop loop) noexcept { return state_->engine->record(loop, false); }
int JitlogWriter::exit(JitlogLoop loop) noexcept { return state_->engine->record(loop, true); }

Result<void> JitlogWriter::result(int sys_errno) const {
  if (sys_errno == 0) return {};
  return Failure(log_error("cannot write " + path(), sys_errno));
}

Result<void> JitlogWriter::flush() { return result(state_->engine->flush()); }
Result<void> JitlogWriter::close() { return result(state_->engine->close()); }
std::uint64_t JitlogWriter::lost() const noexcept { return state_->engine->lost(); }
std::string JitlogWriter::path() const { return path_of(*state_->engine); }

}  // namespace perfmap
