#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/input.hpp"
#include "perfmap/json_writer.hpp"

namespace perfmap {

inline constexpr std::string_view kMapSchema = "perfmap.map/1";

/// The value of "source": what an input was.
void write_source_json(JsonWriter& json, const Input& input, std::string_view kind,
                       std::optional<std::uint64_t> pid, std::uint64_t bytes);

}  // namespace perfmap
