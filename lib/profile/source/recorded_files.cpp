// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <unordered_map>

#include "base/directory.hpp"
#include "base/hex_bytes.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/json.hpp"
#include "perfmap/profile/source.hpp"
#include "process/safe_open.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMaxFiles = 65'536;  // as in ArchiveLimits
constexpr std::size_t kMaxBuildId = 64;    // as of ELF files

using PidsByName = std::unordered_map<std::string, pid_t>;

/// The text of recording.json; nothing if there is none.
Result<std::optional<std::string>> description_in(int directory, const std::string& name) {
  constexpr std::size_t kMaxText = std::size_t{64} << 20;
  const std::string file(kRecordingManifestName);
  Result<ReadText> read = read_text_at(directory, file.c_str(), name, kMaxText);
  if (!read && read.error().code == Errc::not_found) return std::nullopt;
  if (!read) return failure(read);
  if (read->was_cut) return Failure(Error::of(Reason::too_large, name));
  return std::optional(std::move(read->text));
}

/// What recording.json says, by a function of json.hpp; nothing if there is none.
template <class Parse>
auto described_in(int directory, const std::string& path, Parse parse) -> decltype(parse("")) {
  const std::string name = path + "/" + std::string(kRecordingManifestName);
  const auto text = description_in(directory, name);
  if (!text) return failure(text);
  if (!*text) return {};
  auto list = parse(**text);
  if (list) return list;
  Error error = list.error();
  error.prefix("cannot use " + name + ": ")
      .append(" (the directory can also be read without this file)");
  return Failure(std::move(error));
}

Result<PidsByName> described_pids(int directory, const std::string& path) {
  const auto files = described_in(directory, path, parse_recorded_files);
  if (!files) return failure(files);
  PidsByName pids;
  for (const RecordedFile& one : *files) pids.try_emplace(one.path, one.pid);
  return pids;
}

pid_t as_pid(std::optional<std::uint64_t> number) {
  return number && *number <= INT32_MAX ? static_cast<pid_t>(*number) : 0;
}

pid_t pid_of_header(const std::string& path) {
  const Result<Input> input =
      Input::open(path, {.follow_link = false, .regular_only = true, .bounded = true});
  if (!input) return 0;
  const auto header = Jitdump(*input).header();
  return header ? as_pid(header->pid) : 0;
}

/// The copies whose names say their build IDs. Nothing says their sizes, and where they are from.
Result<std::vector<RecordedModule>> named_modules(int directory, const std::string& path) {
  std::vector<RecordedModule> files;
  const bool is_listed = visit_names(directory, ".", [&](const std::string& name) {
    if (!name.starts_with(kCopiedModulePrefix)) return true;
    auto build_id = bytes_of_hex(name.substr(kCopiedModulePrefix.size()), kMaxBuildId);
    if (build_id && !build_id->empty()) files.push_back({name, "", *std::move(build_id), 0});
    return files.size() <= kMaxFiles;
  });
  if (!is_listed) return Failure(system_error("cannot open", path, errno));
  if (files.size() <= kMaxFiles) return files;
  return Failure(Error::too_large(path + " has too many copies of ELF files"));
}

/// What is wrong with a copy that does not have the size that recording.json says.
std::optional<Error> damage_of(const RecordedModule& module, int directory,
                               const std::string& path) {
  struct stat there {};
  const bool is_file =
      ::fstatat(directory, module.path.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(there.st_mode);
  const auto size = static_cast<std::uint64_t>(there.st_size);
  if (!is_file || module.size == 0 || size == module.size) return std::nullopt;
  const std::string counts = std::to_string(size) + " of " + std::to_string(module.size) + " bytes";
  return Error::bad_format(
      "cannot use " + path + "/" + module.path + ", the copy of " + module.source + ": " +
      (size < module.size ? "it is truncated: " : "it was changed: ") + counts);
}

}  // namespace

Result<std::vector<RecordedFile>> recorded_files_in(const std::string& directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return Failure(system_error("cannot open", directory, errno));
  const Result<PidsByName> described = described_pids(opened.get(), directory);
  if (!described) return failure(described);
  std::vector<RecordedFile> files;
  const bool is_listed = visit_names(opened.get(), ".", [&](const std::string& name) {
    const auto map_pid = kMapName.pid_in(name);
    if (!map_pid && !is_dump_path(name)) return true;
    const auto known = described->find(name);
    pid_t pid =
        known != described->end() ? known->second : as_pid(map_pid ? map_pid : dump_pid_in(name));
    if (pid == 0) pid = pid_of_header(directory + "/" + name);
    files.push_back({name, pid, !map_pid});
    return files.size() <= kMaxFiles;
  });
  if (!is_listed) return Failure(system_error("cannot open", directory, errno));
  if (files.size() > kMaxFiles) {
    return Failure(Error::too_large(directory + " has too many perf maps and jitdumps"));
  }
  std::ranges::sort(files, {}, [](const RecordedFile& one) {
    return std::tuple(one.pid, one.is_dump, one.path);
  });
  return files;
}

Result<std::vector<MissingFile>> missing_files_in(const std::string& directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return Failure(system_error("cannot open", directory, errno));
  return described_in(opened.get(), directory, parse_missing_files);
}

Result<std::shared_ptr<const RecordedModules>> recorded_modules_in(const std::string& directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return Failure(system_error("cannot open", directory, errno));
  const std::string manifest(kRecordingManifestName);
  const bool is_described =
      ::faccessat(opened.get(), manifest.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  auto files = is_described ? described_in(opened.get(), directory, parse_recorded_modules)
                            : named_modules(opened.get(), directory);
  if (!files) return failure(files);
  if (files->empty()) return nullptr;
  std::vector<Error> damaged;
  std::erase_if(*files, [&](const RecordedModule& one) {
    std::optional<Error> found = damage_of(one, opened.get(), directory);
    if (found) damaged.push_back(*std::move(found));
    return found.has_value();
  });
  return std::make_shared<const RecordedModules>(directory, *std::move(files), std::move(damaged));
}

RecordedModules::RecordedModules(std::string directory, std::vector<RecordedModule> files,
                                 std::vector<Error> damaged)
    : directory_(std::move(directory)), files_(std::move(files)), damaged_(std::move(damaged)) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!files_[i].build_id.empty()) by_build_id_.try_emplace(files_[i].build_id, i);
    if (!files_[i].source.empty()) by_source_.try_emplace(files_[i].source, i);
  }
}

const RecordedModule* RecordedModules::find(const std::string& path,
                                            const std::string& build_id) const {
  const auto& index = build_id.empty() ? by_source_ : by_build_id_;
  const auto found = index.find(build_id.empty() ? path : build_id);
  return found == index.end() ? nullptr : &files_[found->second];
}

Result<Input> RecordedModules::open(const RecordedModule& module, const std::string& path) const {
  const std::string name = directory_ + "/" + module.path;
  Result<Input> input = Input::open(
      name,
      {.follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false});
  // Debug files are searched beside the original.
  if (input) input->rename(module.source.empty() ? path : module.source);
  return input;
}

}  // namespace perfmap
