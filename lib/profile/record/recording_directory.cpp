// SPDX-License-Identifier: MIT
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

Error refusal(const std::string& path, const std::string& why) {
  return {Errc::refused, "cannot create " + path + ": " + why, 0, {}};
}

/// Whether a directory is there already that can be used: empty, and ours.
Result<bool> is_usable(const OutputPlace& place, const std::string& path) {
  const struct stat* const there = place.existing();
  if (there == nullptr) return false;
  if (!S_ISDIR(there->st_mode)) {
    return Failure(refusal(path, "it exists and is not a directory"));
  }
  if (there->st_uid != ::geteuid()) return Failure(refusal(path, "it belongs to another user"));
  std::error_code error;
  if (!std::filesystem::is_empty(path, error) || error) {
    return Failure(refusal(path, "it exists and is not empty"));
  }
  return true;
}

Result<std::string> absolute_path(const std::string& path) {
  std::array<char, PATH_MAX> real = {};
  if (::realpath(path.c_str(), real.data()) != nullptr) return std::string(real.data());
  return Failure(system_error("cannot open " + path, errno));
}

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key);
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

void write_file(JsonWriter& json, const KeptFile& file) {
  json.begin_object();
  json.member("kind", file.is_dump ? "dump" : "map");
  json.text_members("path", file.name);
  json.text_members("source", file.source);
  json.key("pid");
  json.integer(file.pid);
  json.member("size", file.size);
  json.end_object();
}

void write_missing(JsonWriter& json, const MissingFile& file) {
  json.begin_object();
  json.text_members("source", file.source);
  json.key("pid");
  json.integer(file.pid);
  json.text_members("why", file.why);
  json.end_object();
}

void write_module(JsonWriter& json, const RecordedModule& module) {
  json.begin_object();
  json.text_members("path", module.path);
  json.text_members("source", module.source);
  json.member("build_id", hex_of_bytes(module.build_id));
  json.member("size", module.size);
  json.end_object();
}

}  // namespace

Result<RecordingDirectory> RecordingDirectory::create(const std::string& path) {
  std::string name = path.substr(0, path.find_last_not_of('/') + 1);
  if (name.empty()) return Failure(refusal(path, "the name of the directory is empty"));
  const Result<OutputPlace> place = OutputPlace::find(name, OutputPlace::Last::kept);
  if (!place) return Failure(place.error());
  const Result<bool> usable = is_usable(*place, name);
  if (!usable) return Failure(usable.error());
  if (!*usable && ::mkdirat(place->directory(), place->name().c_str(), 0700) != 0) {
    return Failure(system_error("cannot create " + name, errno));
  }
  Result<std::string> absolute = absolute_path(name);
  if (!absolute) return Failure(absolute.error());
  RecordingDirectory directory(*std::move(absolute), !*usable);
  // perf writes to it. A second recording that was started meanwhile finds it.
  Result<void> taken = directory.write(std::string(kRecordingName), "");
  if (!taken) return Failure(std::move(taken.error()));
  return directory;
}

Result<void> RecordingDirectory::write(const std::string& name, std::string_view bytes) const {
  const std::string path = path_ + "/" + name;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor file(::open(path.c_str(), kFlags, 0600));
  if (!file.is_open()) return Failure(system_error("cannot write " + path, errno));
  OutputFile out = OutputFile::to_descriptor(file.get(), path);
  out.write(bytes);
  Result<void> written = out.flush();
  if (!written) ::unlink(path.c_str());
  return written;
}

void RecordingDirectory::discard() const noexcept {
  std::error_code ignored;
  std::filesystem::remove(recording(), ignored);
  if (was_made_) std::filesystem::remove(path_, ignored);
}

Result<void> RecordingDirectory::remove(std::span<const std::string> files) const {
  for (const std::string& file : files) ::unlink((path_ + "/" + file).c_str());
  if (!was_made_ || ::rmdir(path_.c_str()) == 0) return {};
  return Failure(system_error("cannot remove " + path_, errno));
}

Result<void> write_manifest(const RecordingDirectory& directory, const RecordingManifest& manifest,
                            std::span<const KeptFile> files,
                            std::span<const RecordedModule> modules) {
  Result<OutputFile> out =
      OutputFile::replace_itself(directory.path() + "/" + std::string(kRecordingManifestName));
  if (!out) return Failure(std::move(out.error()));
  out->make_private();  // command lines may have passwords
  JsonWriter json(*out);
  json.begin_object();
  json.member("schema", "perfmap.recording/1");
  write_texts(json, "command", manifest.command);
  json.key("pids");
  json.begin_array();
  for (const pid_t pid : manifest.pids) json.integer(pid);
  json.end_array();
  write_texts(json, "perf", manifest.perf);
  json.key("exit_status");
  json.integer(manifest.exit_status);
  json.key("variables");
  json.begin_object();
  for (const NamingVariable& variable : manifest.variables) {
    json.member(variable.name, variable.value);
  }
  json.end_object();
  json.key("files");
  json.begin_array();
  for (const KeptFile& file : files) write_file(json, file);
  json.end_array();
  json.key("missing");
  json.begin_array();
  for (const MissingFile& file : manifest.missing) write_missing(json, file);
  json.end_array();
  json.key("modules");
  json.begin_array();
  for (const RecordedModule& module : modules) write_module(json, module);
  json.end_array();
  json.end_object();
  json.newline();
  return out->commit();
}

}  // namespace perfmap
