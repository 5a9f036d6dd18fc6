// SPDX-License-Identifier: MIT
// Any bytes are a manifest of a snapshot or are refused. A manifest survives a round trip, and no
// path in it leads out of the snapshot. The same bytes as the description of a recording directory
// name only files in it.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "perfmap/input.hpp"
#include "perfmap/json.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

SnapshotManifest written_and_read(const SnapshotManifest& manifest) {
  const int fd = ::memfd_create("manifest", MFD_CLOEXEC);
  OutputFile out = OutputFile::to_descriptor(fd, "manifest");
  write_manifest(manifest, out);
  require(out.flush().has_value() && ::lseek(fd, 0, SEEK_SET) == 0);
  const auto input = Input::from_descriptor(fd, "manifest");
  ::close(fd);
  require(input.has_value());
  const auto again = parse_manifest(input->text());
  require(again.has_value());
  return *again;
}

void check_names(std::string_view json) {
  const auto is_name = [](const std::string& path) {
    return !path.empty() && path != "." && path != ".." && path.find('/') == path.npos &&
           path.find('\0') == path.npos;
  };
  if (const auto files = parse_recorded_files(json)) {
    for (const RecordedFile& file : *files) require(is_name(file.path) && file.pid > 0);
  }
  if (const auto modules = parse_recorded_modules(json)) {
    for (const RecordedModule& module : *modules) {
      require(is_name(module.path) && module.build_id.size() <= 64);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_names({reinterpret_cast<const char*>(data), size});
  const auto manifest = parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!manifest) {
    require(!manifest.error().message().empty());
    return 0;
  }
  require(manifest->pid > 0);
  for (const SnapshotFile& file : manifest->files) {
    require(!file.path.empty() && file.path.front() != '/');
    require(("/" + file.path + "/").find("/../") == std::string::npos);
  }
  // The first round trip drops members that do not apply to a file's kind.
  const SnapshotManifest once = written_and_read(*manifest);
  require(once.modules == manifest->modules);
  require(written_and_read(once) == once);
  return 0;
}
