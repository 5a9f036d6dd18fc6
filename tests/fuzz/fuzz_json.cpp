// SPDX-License-Identifier: MIT
// JSON that is accepted gives a map whose JSON gives the same entries again.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "perfmap/json.hpp"
#include "support/written.hpp"

namespace {

using namespace perfmap;

struct Plain {
  AddressRange range;
  std::string name;
  bool operator==(const Plain&) const = default;
};

std::vector<Plain> entries_of(const Map& map) {
  std::vector<Plain> entries;
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    entries.push_back({entry.range, std::string(entry.name)});
  });
  return entries;
}

std::string to_jsonl(const Map& map) {
  Diagnostics ignored(1);
  return test::written([&](OutputFile& out) { write_map_jsonl(map, out, ignored); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const Result<MapText> map = map_text_from_json(json);
  if (!map) {
    if (map.error().message().empty() || map.error().where.line == 0) std::abort();
    return 0;
  }
  const Map first(Input::from_text(map->text, "fuzz"));
  const std::vector<Plain> entries = entries_of(first);
  if (entries.size() != map->entries) std::abort();
  const Result<MapText> again = map_text_from_json(to_jsonl(first));
  if (!again || again->changed.count != 0) std::abort();
  const Map second(Input::from_text(again->text, "fuzz"));
  if (entries_of(second) != entries) std::abort();
  const Result<MapText> once_more = map_text_from_json(to_jsonl(second));
  if (!once_more || once_more->text != again->text) std::abort();
  return 0;
}
