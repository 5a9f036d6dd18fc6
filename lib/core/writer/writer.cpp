#include "perfmap/writer.hpp"

#include <cerrno>

#include "writer/engine.hpp"
#include "writer/fork_guard.hpp"

namespace perfmap {

struct MapWriter::State {
  Engine engine;
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
  Registry::get().add(&state->engine);
  state->engine.configure(options);
  state->path = name;
  const int error = open(state->engine);
  if (error != 0) return Failure(system_error("cannot open " + name, error));
  return MapWriter(std::move(state));
}

Result<MapWriter> MapWriter::open(const std::string& path, const WriterOptions& options) {
  return make(path, options, [&](Engine& engine) { return engine.open(path.c_str()); });
}

Result<MapWriter> MapWriter::to_descriptor(int fd, std::string name, const WriterOptions& options) {
  return make(name, options, [&](Engine& engine) { return engine.open(fd); });
}

Result<void> MapWriter::result(std::string_view what, int sys_errno) const {
  if (sys_errno == 0) return {};
  std::string message(what);
  message += state_->path;
  return Failure(system_error(std::move(message), sys_errno));
}

Result<void> MapWriter::write(Address start, std::uint64_t size, std::string_view name) {
  int error = state_->engine.write(start, size, name);
  if (error == 0) [[likely]]
    return {};
  if (error == Engine::kAtCap && state_->engine.ask_for_room()) {
    error = state_->engine.write(start, size, name);
  }
  return result("cannot write ", error == Engine::kAtCap ? EFBIG : error);
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

}  // namespace perfmap
