// SPDX-License-Identifier: MIT
// Writing the manifest of a snapshot as JSON, and parsing it.

#include "perfmap/json.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::snapshot_json_test {
namespace {

std::string json_of(const SnapshotManifest& manifest) {
  const test::Scratch scratch;
  Result<OutputFile> out = OutputFile::replace(scratch / "manifest.json");
  REQUIRE(out);
  write_manifest(manifest, *out);
  REQUIRE(out->commit());
  return test::read_file(scratch / "manifest.json");
}

SnapshotManifest full_manifest() {
  SnapshotManifest manifest;
  manifest.pid = 42;
  manifest.namespace_pids = {42, 3};
  manifest.comm = "a (b) \xff";
  manifest.executable = "/usr/bin/node";
  manifest.uid = 1000;
  manifest.start = UINT64_MAX;
  manifest.boot_ns = 1'700'000'000'123'456'789;
  manifest.taken_at_ns = 1'700'000'001'000'000'000;
  manifest.kernel = "6.1.0";
  manifest.machine = "x86_64";
  manifest.modules = {{"/lib/libc.so.6", std::string("\x00\xff\x10", 3), 7, false},
                      {"/tmp/gone\n", "", 0, true}};
  SnapshotFile map{.kind = SnapshotFile::Kind::map, .path = "tmp/perf-42.map", .source = "/tmp/x"};
  map.owner = 7;
  map.mtime_ns = 1'600'000'000'000'000'001;
  map.size = 5;
  map.cut = 6;
  SnapshotFile vdso{.kind = SnapshotFile::Kind::vdso, .path = "vdso.so", .source = "[vdso]"};
  vdso.address = 0x7fff'0000'0000;
  vdso.size = 8192;
  SnapshotFile images = map;
  images.kind = SnapshotFile::Kind::images;
  images.path = "tmp/perfinfo-42.map";
  manifest.files = {map, images, vdso};
  manifest.left_out = {"perf-3.map is a link"};
  return manifest;
}

}  // namespace

TEST_CASE("a manifest survives a round trip, with any bytes in its names", "[snapshot]") {
  const SnapshotManifest manifest = full_manifest();
  const auto parsed = parse_manifest(json_of(manifest));
  REQUIRE(parsed);
  CHECK(*parsed == manifest);
}

TEST_CASE("a manifest with another schema or with damage is refused with a message", "[snapshot]") {
  struct Case {
    std::string json;
    Errc code;
    std::string message;
  };
  const std::string head = R"({"schema":"perfmap.snapshot/1","pid":7,)";
  const auto c = GENERATE_COPY(values<Case>({
      {"", Errc::bad_format, "it is not a JSON object"},
      {"[1]", Errc::bad_format, "it is not a JSON object"},
      {"{}", Errc::unsupported, "its schema is not perfmap.snapshot/1"},
      {R"({"schema":"perfmap.snapshot/2"})", Errc::unsupported,
       "its schema is not perfmap.snapshot/1"},
      {R"({"schema":"perfmap.snapshot/1"})", Errc::bad_format, "\"pid\" is missing"},
      {R"({"schema":"perfmap.snapshot/1","pid":-7})", Errc::bad_format,
       "\"pid\" is not an unsigned number of 64 bits"},
      {head + R"("files":[{"kind":"core","path":"a"}]})", Errc::bad_format,
       "\"kind\" is not known"},
      {head + R"("files":[{"kind":"map","path":"../a"}]})", Errc::bad_format,
       "\"path\" is not a path in the snapshot"},
      {head + R"("files":[{"kind":"map","path":"/etc/passwd"}]})", Errc::bad_format,
       "\"path\" is not a path in the snapshot"},
      {head + R"("files":[{"kind":"map","path":"a//b"}]})", Errc::bad_format,
       "\"path\" is not a path in the snapshot"},
      {head + R"("modules":[{"path":"a","build_id":"abc"}]})", Errc::bad_format,
       "\"build_id\" is not hexadecimal"},
      {head + R"("namespace_pids":[1,"x"]})", Errc::bad_format,
       "\"namespace_pids\" is not an array of pids"},
  }));
  CAPTURE(c.json);
  const auto parsed = parse_manifest(c.json);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == c.code);
  CHECK(parsed.error().message() == c.message);
}

}  // namespace perfmap::snapshot_json_test
