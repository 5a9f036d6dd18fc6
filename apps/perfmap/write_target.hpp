#pragma once

#include <cstdint>
#include <perfmap/jitdump_writer.hpp>
#include <perfmap/writer.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "appending.hpp"

namespace perfmap::app {

/// What `write` appends to: a map, or a jitdump.
class WriteTarget {
 public:
  static Result<WriteTarget> open(const AppendOptions& options, bool jitdump,
                                  std::size_t buffer_bytes);

  Result<void> write(Address start, std::uint64_t size, std::string_view name,
                     std::string_view code = {});
  Result<void> flush();
  Result<void> close();

 private:
  template <class Writer>
  explicit WriteTarget(Writer writer) : writer_(std::move(writer)) {}

  std::variant<MapWriter, JitdumpWriter> writer_;
};

/// Why a jitdump cannot have such an entry; empty where it can.
std::string jitdump_refusal(Address start, std::uint64_t size, bool has_code);

}  // namespace perfmap::app
