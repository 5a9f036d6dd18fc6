#include <algorithm>

#include "base/hex.hpp"
#include "perfmap/json_writer.hpp"
#include "perfmap/seconds.hpp"
#include "perfmap/snapshot_manifest.hpp"

namespace perfmap {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

void write_number(JsonWriter& json, std::string_view key, std::uint64_t value) {
  json.key(key);
  json.number(value);
}

void write_pids(JsonWriter& json, std::string_view key, const std::vector<pid_t>& pids) {
  json.key(key);
  json.begin_array();
  for (const pid_t pid : pids) json.number(static_cast<std::uint64_t>(pid));
  json.end_array();
}

/// Of files; none is older than 1970.
void write_time(JsonWriter& json, std::string_view key, std::int64_t ns) {
  json.key(key);
  json.string(seconds_text(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0))));
}

void write_module(JsonWriter& json, const SnapshotModule& module) {
  json.begin_object();
  json.text_members("path", module.path);
  json.key("build_id");
  if (module.build_id.empty()) {
    json.null();
  } else {
    json.string(hex_of(module.build_id));
  }
  write_number(json, "size", module.size);
  if (module.was_deleted) {
    json.key("deleted");
    json.boolean(true);
  }
  json.end_object();
  json.newline();
}

void write_file(JsonWriter& json, const SnapshotFile& file) {
  json.begin_object();
  json.key("kind");
  json.string(to_string(file.kind));
  json.text_members("path", file.path);
  json.text_members("source", file.source);
  if (file.kind == SnapshotFile::Kind::vdso) {
    json.key("address");
    json.address(file.address);
  } else {
    write_number(json, "owner", file.owner);
    write_time(json, "mtime", file.mtime_ns);
  }
  write_number(json, "size", file.size);
  write_number(json, "cut", file.cut);
  json.end_object();
  json.newline();
}

void write_process(JsonWriter& json, const SnapshotManifest& manifest) {
  write_number(json, "pid", static_cast<std::uint64_t>(manifest.pid));
  write_pids(json, "namespace_pids", manifest.namespace_pids);
  if (!manifest.parents.empty()) write_pids(json, "parents", manifest.parents);
  json.text_members("comm", manifest.comm);
  json.text_members("executable", manifest.executable);
  write_number(json, "uid", manifest.uid);
  write_number(json, "start", manifest.start);
  write_time(json, "boot", manifest.boot_ns);
  write_time(json, "taken", manifest.taken_at_ns);
  json.text_members("kernel", manifest.kernel);
  json.text_members("machine", manifest.machine);
  json.newline();
}

}  // namespace

std::string_view to_string(SnapshotFile::Kind kind) noexcept {
  if (kind == SnapshotFile::Kind::map) return "map";
  return kind == SnapshotFile::Kind::dump ? "dump" : "vdso";
}

void write_manifest(const SnapshotManifest& manifest, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.key("schema");
  json.string("perfmap.snapshot/1");
  write_process(json, manifest);
  json.key("files");
  json.begin_array();
  for (const SnapshotFile& file : manifest.files) write_file(json, file);
  json.end_array();
  json.newline();
  json.key("left_out");
  json.begin_array();
  for (const std::string& why : manifest.left_out) json.string(why);
  json.end_array();
  json.newline();
  json.key("modules");
  json.begin_array();
  for (const SnapshotModule& module : manifest.modules) write_module(json, module);
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace perfmap
