#include "write_target.hpp"

#include <unistd.h>

namespace perfmap::app {
namespace {

/// The process that runs the code is not this one, so that a marker would tell perf nothing.
Result<JitdumpWriter> open_jitdump(const AppendOptions& options) {
  JitdumpOptions jitdump;
  jitdump.marker = false;
  jitdump.wait = true;
  jitdump.close_record = false;  // the next call goes on
  jitdump.names = options.strict ? NamePolicy::refuse : NamePolicy::escape;
  if (options.output == "-") {
    return JitdumpWriter::to_descriptor(STDOUT_FILENO, "standard output", jitdump);
  }
  if (!options.output.empty()) return JitdumpWriter::open(options.output, jitdump);
  jitdump.own_dump = true;
  jitdump.pid = std::stoi(options.pid);
  return JitdumpWriter::open(roots_from_environment().tmp + "/jit-" + options.pid + ".dump",
                             jitdump);
}

}  // namespace

Result<WriteTarget> WriteTarget::open(const AppendOptions& options, bool jitdump,
                                      std::size_t buffer_bytes) {
  if (!jitdump) {
    return open_target(options, buffer_bytes).map([](MapWriter writer) {
      return WriteTarget(std::move(writer));
    });
  }
  if (options.pid.empty() == options.output.empty()) return Failure(no_target());
  return open_jitdump(options).map(
      [](JitdumpWriter writer) { return WriteTarget(std::move(writer)); });
}

Result<void> WriteTarget::write(Address start, std::uint64_t size, std::string_view name,
                                std::string_view code) {
  if (MapWriter* const map = std::get_if<MapWriter>(&writer_)) return map->write(start, size, name);
  const auto index = std::get<JitdumpWriter>(writer_).load(
      {.start = start, .size = size, .name = name, .code = code});
  return index ? Result<void>() : Failure(index.error());
}

Result<void> WriteTarget::flush() {
  MapWriter* const map = std::get_if<MapWriter>(&writer_);
  return map != nullptr ? map->flush() : Result<void>();
}

Result<void> WriteTarget::close() {
  return std::visit([](auto& writer) { return writer.close(); }, writer_);
}

std::string jitdump_refusal(Address start, std::uint64_t size, bool has_code) {
  if (size > UINT64_MAX - start) return "code cannot go beyond the end of the address space";
  if (!has_code && size > JitdumpWriter::kMostZeros) {
    return "more than 32 MiB of code would be written as zeros; give it with --code";
  }
  return {};
}

}  // namespace perfmap::app
