#pragma once

#include <functional>
#include <string_view>

#include "perfmap/map_json.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// Parses one JSON value, which is all of `json`, as it goes, and hands out its entries: the value
/// itself, or those in its "entries". Fails with bad_format where it is neither, `where` says
/// where. Nothing is held but one entry and a bit for each level of nesting.
Result<void> for_each_json_entry(std::string_view json, const std::function<void(JsonEntry)>& take);

}  // namespace perfmap
