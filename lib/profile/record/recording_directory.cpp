// SPDX-License-Identifier: MIT
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/prctl.h>
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
  return Error::cannot("create", path, Reason::unsuitable, why);
}

/// Whether a directory is there already that can be used: empty, and ours.
Result<bool> is_usable(const OutputPlace& place, const std::string& path) {
  const struct stat* const there = place.existing();
  if (there == nullptr) return false;
  if (!S_ISDIR(there->st_mode)) return Failure(refusal(path, "it exists and is not a directory"));
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
  return Failure(system_error("cannot open", path, errno));
}

/// Of this process's descriptor, for other processes, too; empty without /proc, and where those of
/// our user may not look at this one, as with capabilities of its file. The pid is the one in this
/// /proc, which may be of another namespace.
std::string path_of_descriptor(int fd) {
  std::array<char, 32> self = {};
  const ssize_t size = ::readlink("/proc/self", self.data(), self.size());
  if (size <= 0 || (::geteuid() != 0 && ::prctl(PR_GET_DUMPABLE) != 1)) return {};
  return "/proc/" + std::string(self.data(), static_cast<std::size_t>(size)) + "/fd/" +
         std::to_string(fd);
}

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.begin_array(key);
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

void write_file(JsonWriter& json, const KeptFile& file) {
  json.begin_object();
  json.member("kind", file.is_dump ? "dump" : "map");
  json.text_members("path", file.name);
  json.text_members("source", file.source);
  json.integer("pid", file.pid);
  json.member("size", file.size);
  json.end_object();
}

void write_missing(JsonWriter& json, const MissingFile& file) {
  json.begin_object();
  json.text_members("source", file.source);
  json.integer("pid", file.pid);
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

struct RecordingDirectory::Held {
  OutputPlace place;  // with the directory above
  Descriptor directory;
  bool was_made = false;
  std::string path = {};
};

Result<RecordingDirectory> RecordingDirectory::create(const std::string& path) {
  std::string name = path.substr(0, path.find_last_not_of('/') + 1);
  if (name.empty()) return Failure(refusal(path, "the name of the directory is empty"));
  Result<OutputPlace> place = OutputPlace::find(name, OutputPlace::Last::kept);
  if (!place) return failure(place);
  const Result<bool> usable = is_usable(*place, name);
  if (!usable) return failure(usable);
  if (!*usable && ::mkdirat(place->directory(), place->name().c_str(), 0700) != 0) {
    return Failure(system_error("cannot create", name, errno));
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor made(::openat(place->directory(), place->name().c_str(), kFlags));
  Result<std::string> absolute = absolute_path(name);
  if (!made.is_open()) return Failure(system_error("cannot open", name, errno));
  if (!absolute) return failure(absolute);
  auto held = std::make_shared<Held>(Held{*std::move(place), std::move(made), !*usable});
  held->path = path_of_descriptor(held->directory.get());
  if (held->path.empty()) held->path = *absolute;
  RecordingDirectory directory(*std::move(absolute), std::move(held));
  // perf writes to it. A second recording that was started meanwhile finds it.
  Result<void> taken = directory.write(std::string(kRecordingName), "");
  if (!taken) return failure(taken);
  return directory;
}

int RecordingDirectory::descriptor() const noexcept { return held_->directory.get(); }
const std::string& RecordingDirectory::held_path() const noexcept { return held_->path; }

Result<void> RecordingDirectory::check() const {
  struct stat status {};
  const FileNumber held = file_number(descriptor());
  if (::fstatat(held_->place.directory(), held_->place.name().c_str(), &status,
                AT_SYMLINK_NOFOLLOW) == 0 &&
      FileNumber{status.st_dev, status.st_ino} == held) {
    return {};
  }
  const Result<std::string> now = absolute_path(held_->path);
  return Failure(Error::refused(path_ + " is no longer the directory that was made" +
                                (now && *now != path_ ? ": the recording is in " + *now : "")));
}

Result<void> RecordingDirectory::write(const std::string& name, std::string_view bytes) const {
  return write(name, [bytes](OutputFile& out) { out.write(bytes); });
}

Result<void> RecordingDirectory::write(const std::string& name,
                                       const std::function<void(OutputFile& out)>& fill) const {
  const std::string path = path_ + "/" + name;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor file(::openat(descriptor(), name.c_str(), kFlags, 0600));
  if (!file.is_open()) return Failure(system_error("cannot write", path, errno));
  OutputFile out = OutputFile::to_descriptor(file.get(), path);
  fill(out);
  Result<void> written = out.flush();
  if (!written) remove_file(name);
  return written;
}

void RecordingDirectory::remove_file(const std::string& name) const noexcept {
  ::unlinkat(descriptor(), name.c_str(), 0);
}

void RecordingDirectory::discard() const {
  const std::array files = {std::string(kRecordingName)};
  (void)remove(files);
}

Result<void> RecordingDirectory::remove(std::span<const std::string> files) const {
  for (const std::string& file : files) remove_file(file);
  const OutputPlace& place = held_->place;
  if (!held_->was_made) return {};
  if (const Result<void> same = check(); !same) return same;
  if (::unlinkat(place.directory(), place.name().c_str(), AT_REMOVEDIR) == 0) return {};
  return Failure(system_error("cannot remove", path_, errno));
}

namespace {

void write_members(OutputFile& out, const RecordingManifest& manifest,
                   std::span<const KeptFile> files, std::span<const RecordedModule> modules) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.recording/1");
  write_texts(json, "command", manifest.command);
  json.list("pids", manifest.pids, [&](const pid_t pid) { json.integer(pid); });
  write_texts(json, "perf", manifest.perf);
  json.integer("exit_status", manifest.exit_status);
  json.begin_object("variables");
  for (const NamingVariable& variable : manifest.variables) {
    json.member(variable.name, variable.value);
  }
  json.end_object();
  json.list("files", files, [&](const KeptFile& file) { write_file(json, file); });
  json.list("missing", manifest.missing,
            [&](const MissingFile& file) { write_missing(json, file); });
  json.list("modules", modules, [&](const RecordedModule& module) { write_module(json, module); });
  json.end_object();
  json.newline();
}

}  // namespace

Result<void> write_manifest(const RecordingDirectory& directory, const RecordingManifest& manifest,
                            std::span<const KeptFile> files,
                            std::span<const RecordedModule> modules) {
  const std::string name(kRecordingManifestName);
  directory.remove_file(name);
  return directory.write(name,
                         [&](OutputFile& out) { write_members(out, manifest, files, modules); });
}

}  // namespace perfmap
