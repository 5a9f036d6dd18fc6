// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "report/json_fields.hpp"

namespace perfmap {

namespace {

void write_number(JsonWriter& json, std::string_view key, std::uint64_t value) {
  json.member(key, value);
}

void write_pids(JsonWriter& json, std::string_view key, const std::vector<pid_t>& pids) {
  json.list(key, pids, [&](const pid_t pid) { json.number(static_cast<std::uint64_t>(pid)); });
}

/// File times; never before 1970.
void write_time(JsonWriter& json, std::string_view key, std::int64_t ns) {
  json.member(key, seconds_text(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0))));
}

void write_module(JsonWriter& json, const SnapshotModule& module) {
  json.begin_object();
  json.text_members("path", module.path);
  json.key("build_id");
  if (module.build_id.empty()) {
    json.null();
  } else {
    json.string(hex_of_bytes(module.build_id));
  }
  write_number(json, "size", module.size);
  if (module.was_deleted) json.boolean("deleted", true);
  json.end_object();
  json.newline();
}

constexpr std::array<std::string_view, 4> kKinds = {"map", "dump", "images", "vdso"};

void write_file(JsonWriter& json, const SnapshotFile& file) {
  json.begin_object();
  json.member("kind", to_string(file.kind));
  json.text_members("path", file.path);
  json.text_members("source", file.source);
  if (file.kind == SnapshotFile::Kind::vdso) {
    json.address("address", file.address);
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

using Json = nlohmann::json;

constexpr std::size_t kMaxBuildId = 64;
constexpr std::size_t kMaxPids = 64;

/// Whether opening this path below a bundle stays inside it, provided that no component is a link.
bool stays_below(std::string_view path) noexcept {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return true;
}

/// The first problem, and what was read before it.
struct Reading {
  SnapshotManifest manifest;
  std::string problem;

  void settle(const Fields& fields) {
    if (problem.empty()) problem = fields.problem();
  }
};

void read_module(const Json& object, Reading& reading) {
  Fields fields(object);
  SnapshotModule module;
  module.path = fields.text("path");
  if (const auto found = object.find("build_id"); found != object.end() && !found->is_null()) {
    const auto bytes = bytes_of_hex(fields.text("build_id"), kMaxBuildId);
    if (!bytes) fields.fail("\"build_id\" is not hexadecimal");
    module.build_id = bytes.value_or("");
  }
  module.size = fields.number("size");
  module.was_deleted = fields.flag("deleted");
  reading.settle(fields);
  reading.manifest.modules.push_back(std::move(module));
}

std::int64_t read_time(Fields& fields, const char* key) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(fields.time(key), INT64_MAX));
}

void read_file(const Json& object, Reading& reading) {
  Fields fields(object);
  SnapshotFile file;
  const std::string kind = fields.text("kind");
  const auto* const known = std::ranges::find(kKinds, kind);
  if (known == kKinds.end()) {
    fields.fail("\"kind\" is not known");
  } else {
    file.kind = static_cast<SnapshotFile::Kind>(known - kKinds.begin());
  }
  file.path = fields.text("path");
  if (!stays_below(file.path)) fields.fail("\"path\" is not a path in the snapshot");
  file.source = fields.text("source");
  file.owner = fields.number32("owner");
  file.mtime_ns = read_time(fields, "mtime");
  file.size = fields.number("size");
  file.cut = fields.number("cut");
  file.address = fields.address("address");
  reading.settle(fields);
  reading.manifest.files.push_back(std::move(file));
}

std::vector<pid_t> read_pids(const Json& json, const char* key, Fields& fields) {
  std::vector<pid_t> pids;
  const auto found = json.find(key);
  if (found == json.end()) return pids;
  const std::string problem = "\"" + std::string(key) + "\" is not an array of pids";
  if (!found->is_array() || found->size() > kMaxPids) {
    fields.fail(problem);
    return pids;
  }
  for (const Json& one : *found) {
    const bool good = one.is_number_unsigned() && one.get<std::uint64_t>() <= INT32_MAX;
    if (!good) {
      fields.fail(problem);
      return pids;
    }
    pids.push_back(one.get<pid_t>());
  }
  return pids;
}

void read_left_out(const Json& json, Fields& fields, SnapshotManifest& manifest) {
  const auto found = json.find("left_out");
  if (found == json.end()) return;
  if (!found->is_array()) return fields.fail("\"left_out\" is not an array");
  for (const Json& one : *found) {
    if (!one.is_string()) return fields.fail("\"left_out\" is not an array of strings");
    manifest.left_out.push_back(one.get<std::string>());
  }
}

void read_process(const Json& json, Reading& reading) {
  SnapshotManifest& manifest = reading.manifest;
  Fields fields(json);
  manifest.pid = static_cast<pid_t>(fields.number("pid", INT32_MAX));
  if (manifest.pid == 0) fields.fail("\"pid\" is missing");
  manifest.namespace_pids = read_pids(json, "namespace_pids", fields);
  manifest.parents = read_pids(json, "parents", fields);
  manifest.comm = fields.text("comm");
  manifest.executable = fields.text("executable");
  manifest.uid = fields.number32("uid");
  manifest.start = fields.number("start");
  manifest.boot_ns = read_time(fields, "boot");
  manifest.taken_at_ns = read_time(fields, "taken");
  manifest.kernel = fields.text("kernel");
  manifest.machine = fields.text("machine");
  read_left_out(json, fields, manifest);
  reading.settle(fields);
}

}  // namespace

std::string_view to_string(SnapshotFile::Kind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}

void write_manifest(const SnapshotManifest& manifest, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.snapshot/1");
  write_process(json, manifest);
  json.list("files", manifest.files, [&](const SnapshotFile& file) { write_file(json, file); });
  json.newline();
  json.begin_array("left_out");
  for (const std::string& why : manifest.left_out) json.string(why);
  json.end_array();
  json.newline();
  json.list("modules", manifest.modules,
            [&](const SnapshotModule& module) { write_module(json, module); });
  json.end_object();
  json.newline();
}

Result<SnapshotManifest> parse_manifest(std::string_view json) {
  static constexpr std::string_view kMembers[] = {
      "schema",           "modules",      "files",   "left_out",     "pid",
      "namespace_pids",   "parents",      "comm",    "comm_bytes",   "executable",
      "executable_bytes", "uid",          "start",   "boot",         "taken",
      "kernel",           "kernel_bytes", "machine", "machine_bytes"};
  Reading reading;
  const auto take = [&reading](const std::string& list, const Json& one) {
    if (!reading.problem.empty()) return;
    if (list == "modules") read_module(one, reading);
    if (list == "files") read_file(one, reading);
  };
  const Result<Json> document = read_description(json, "perfmap.snapshot/1", kMembers, take);
  if (!document) return failure(document);
  read_process(*document, reading);
  Fields lists(*document);
  for (const char* const key : {"modules", "files"}) lists.objects(key);
  reading.settle(lists);
  if (!reading.problem.empty()) return Failure(Error::bad_format(reading.problem));
  return std::move(reading.manifest);
}

}  // namespace perfmap
