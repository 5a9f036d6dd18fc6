#include "perfmap/jitdump_writer.hpp"

#include <cerrno>

#include "perfmap/process_map.hpp"
#include "runtime/dump_engine.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

Error failed(const std::string& what, int sys_errno) {
  Error error = system_error(what, sys_errno);
  if (sys_errno == EINVAL) error.code = Errc::invalid_argument;
  if (sys_errno == EOVERFLOW) error.code = Errc::too_large;
  return error;
}

}  // namespace

struct JitdumpWriter::State {
  explicit State(const JitdumpOptions& options) : engine(options) {}
  DumpEngine engine;
};

JitdumpWriter::JitdumpWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitdumpWriter::JitdumpWriter(JitdumpWriter&&) noexcept = default;
JitdumpWriter& JitdumpWriter::operator=(JitdumpWriter&&) noexcept = default;
JitdumpWriter::~JitdumpWriter() = default;

template <class Open>
Result<JitdumpWriter> JitdumpWriter::make(const JitdumpOptions& options, Open open) {
  if (const int error = ForkGuard::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  auto state = std::make_unique<State>(options);
  Registry::get().add(&state->engine);
  const Result<void> opened = open(state->engine);
  if (!opened) return Failure(opened.error());
  return JitdumpWriter(std::move(state));
}

Result<JitdumpWriter> JitdumpWriter::open_own(const std::string& directory,
                                              const JitdumpOptions& options) {
  return make(options, [&](DumpEngine& engine) { return engine.open_own(directory); });
}

Result<JitdumpWriter> JitdumpWriter::open(const std::string& path, const JitdumpOptions& options) {
  return make(options, [&](DumpEngine& engine) { return engine.open(path); });
}

Result<JitdumpWriter> JitdumpWriter::to_descriptor(int fd, std::string name,
                                                   const JitdumpOptions& options) {
  return make(options, [&](DumpEngine& engine) { return engine.open(fd, name); });
}

std::string JitdumpWriter::path() const { return state_->engine.path(); }

Result<std::uint64_t> JitdumpWriter::load(const JitFunction& function, MapWriter* map) {
  std::uint64_t index = 0;
  const int error = state_->engine.load(function, index);
  if (error != 0) [[unlikely]]
    return Failure(failed("cannot write " + path(), error));
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
  return Failure(failed("cannot write " + path(), error));
}

Result<void> JitdumpWriter::close() {
  const int error = state_->engine.close();
  if (error == 0) return {};
  return Failure(failed("cannot close " + path(), error));
}

}  // namespace perfmap
