// What is taken for our JSON gives a map whose JSON gives the same map again.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "perfmap/map_json.hpp"

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

/// What to-json writes of a map; OutputFile wants a descriptor, so this goes through one in memory.
std::string to_jsonl(const Map& map) {
  const int fd = ::memfd_create("json", MFD_CLOEXEC);
  if (fd < 0) std::abort();
  OutputFile out = OutputFile::to_descriptor(fd, "memory");
  Diagnostics ignored(1);
  write_map_jsonl(map, out, ignored);
  if (!out.flush()) std::abort();
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  if (::pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) std::abort();
  ::close(fd);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const Result<MapText> map = map_text_from_json(json);
  if (!map) {
    if (map.error().message.empty() || map.error().where.line == 0) std::abort();
    return 0;
  }
  const Map first(Input::from_text(map->text, "fuzz"));
  const std::vector<Plain> entries = entries_of(first);
  if (entries.size() != map->entries) std::abort();
  const Result<MapText> again = map_text_from_json(to_jsonl(first));
  if (!entries.empty() && (!again || again->text != map->text)) std::abort();
  return 0;
}
