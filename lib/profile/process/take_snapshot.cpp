// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/snapshot.hpp"
#include "perfmap/types.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

namespace {

/// A directory that gets its name when it is complete, or never. It is private to its owner: mode
/// 0700, and 0600 for its files.
class NewTree {
 public:
  /// `path` must not exist, or be an empty directory.
  static Result<NewTree> begin(const std::string& path);
  NewTree(NewTree&& other) noexcept = default;
  NewTree& operator=(NewTree&& other) noexcept = default;
  ~NewTree();

  /// Paths are relative to the tree; parent directories are created. No component may be "..".
  Result<void> make_directory(std::string_view path);
  /// Creates a file for writing; fails if the name exists.
  Result<Descriptor> create(std::string_view path);
  /// Blocks of zeros become holes.
  Result<void> write(std::string_view path, std::string_view bytes,
                     std::optional<std::int64_t> mtime_ns = {});
  Result<void> link(std::string_view path, const std::string& target);
  void remove(std::string_view path) noexcept;

  Result<void> publish();

 private:
  NewTree() = default;
  /// The parent directory, and the last component of the path.
  struct Place {
    Descriptor directory;
    std::string name;
  };
  Result<Place> place_of(std::string_view path);
  Error error(std::string_view path, int sys_errno) const;
  /// By the open directory: links in the path were checked once.
  std::string path_of(const char* ending) const {
    return "/proc/self/fd/" + std::to_string(place_->directory()) + "/" + place_->name() + ending;
  }

  std::string final_path_;
  std::optional<OutputPlace> place_;  // of the finished tree
  std::string path_;                  // of the temporary tree; empty once published or moved from
  Descriptor directory_;
};

constexpr std::size_t kBlock = std::size_t{64} << 10;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Why nothing can be created at `path`, or nothing.
std::optional<Error> objection(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return system_error("cannot create", path, errno);
  }
  std::error_code error;
  if (S_ISDIR(status.st_mode) && std::filesystem::is_empty(path, error)) return std::nullopt;
  const char* const what =
      S_ISDIR(status.st_mode) ? "it exists and is not empty" : "it exists and is not a directory";
  return Error::cannot("create", path, Reason::unsuitable, what);
}

bool is_part(std::string_view part) noexcept {
  return !part.empty() && part != "." && part != "..";
}

int write_all(int fd, std::string_view bytes, std::uint64_t offset) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put == 0 ? EIO : errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

/// Returns 0 or an errno value.
int write_with_holes(int fd, std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    const std::string_view block = bytes.substr(at, kBlock);
    if (block.find_first_not_of('\0') == block.npos) continue;
    if (const int error = write_all(fd, block, at); error != 0) return error;
  }
  return ::ftruncate(fd, static_cast<off_t>(bytes.size())) == 0 ? 0 : errno;
}

timespec to_timespec(std::int64_t ns) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  ns = std::max<std::int64_t>(ns, 0);
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

Result<NewTree> NewTree::begin(const std::string& path) {
  NewTree tree;
  tree.final_path_ = path.substr(0, path.find_last_not_of('/') + 1);
  if (tree.final_path_.empty()) {
    return Failure(Error::invalid("the name of the directory is empty"));
  }
  if (std::optional<Error> why = objection(tree.final_path_)) return Failure(*std::move(why));
  Result<OutputPlace> place = OutputPlace::find(tree.final_path_, OutputPlace::Last::kept);
  if (!place) return failure(place);
  tree.place_ = *std::move(place);
  std::string name = tree.path_of(".XXXXXX");
  if (::mkdtemp(name.data()) == nullptr) {
    return Failure(system_error("cannot create", tree.final_path_, errno));
  }
  tree.path_ = std::move(name);
  tree.directory_ = Descriptor(::open(tree.path_.c_str(), kDirectoryFlags));
  if (!tree.directory_.is_open()) return Failure(tree.error("", errno));
  return tree;
}

NewTree::~NewTree() {
  // Moved from or published.
  if (path_.empty() || !directory_.is_open()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Error NewTree::error(std::string_view path, int sys_errno) const {
  return system_error("cannot write", final_path_ + "/" + std::string(path), sys_errno);
}

Result<NewTree::Place> NewTree::place_of(std::string_view path) {
  Place place{Descriptor(::openat(directory_.get(), ".", kDirectoryFlags)), {}};
  std::string_view rest = path;
  while (place.directory.is_open()) {
    const std::string part(rest.substr(0, rest.find('/')));
    if (!is_part(part)) return Failure(error(path, EINVAL));
    if (part.size() == rest.size()) {
      place.name = part;
      return place;
    }
    rest.remove_prefix(part.size() + 1);
    if (::mkdirat(place.directory.get(), part.c_str(), 0700) != 0 && errno != EEXIST) break;
    place.directory = Descriptor(::openat(place.directory.get(), part.c_str(), kDirectoryFlags));
  }
  return Failure(error(path, errno));
}

Result<void> NewTree::make_directory(std::string_view path) {
  const Result<Place> place = place_of(path);
  if (!place) return failure(place);
  const int made = ::mkdirat(place->directory.get(), place->name.c_str(), 0700);
  if (made != 0 && errno != EEXIST) return Failure(error(path, errno));
  return {};
}

Result<Descriptor> NewTree::create(std::string_view path) {
  const Result<Place> place = place_of(path);
  if (!place) return failure(place);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor fd(::openat(place->directory.get(), place->name.c_str(), kFlags, 0600));
  if (!fd.is_open()) return Failure(error(path, errno));
  return fd;
}

Result<void> NewTree::write(std::string_view path, std::string_view bytes,
                            std::optional<std::int64_t> mtime_ns) {
  const Result<Descriptor> fd = create(path);
  if (!fd) return failure(fd);
  if (const int failed = write_with_holes(fd->get(), bytes); failed != 0) {
    return Failure(error(path, failed));
  }
  if (!mtime_ns) return {};
  const std::array<timespec, 2> times = {to_timespec(*mtime_ns), to_timespec(*mtime_ns)};
  if (::futimens(fd->get(), times.data()) != 0) return Failure(error(path, errno));
  return {};
}

Result<void> NewTree::link(std::string_view path, const std::string& target) {
  const Result<Place> place = place_of(path);
  if (!place) return failure(place);
  if (::symlinkat(target.c_str(), place->directory.get(), place->name.c_str()) == 0) return {};
  return Failure(error(path, errno));
}

void NewTree::remove(std::string_view path) noexcept {
  const Result<Place> place = place_of(path);
  if (place) ::unlinkat(place->directory.get(), place->name.c_str(), 0);
}

Result<void> NewTree::publish() {
  if (::rename(path_.c_str(), path_of("").c_str()) != 0) {
    return Failure(system_error("cannot create", final_path_, errno));
  }
  path_.clear();
  directory_ = Descriptor();
  return {};
}

/// What is read about one program in one process at one moment.
struct SnapshotLook {
  pid_t pid = 0;
  ProcessStatus status;
  std::uint64_t image = 0;
  std::string executable;
  std::vector<std::pair<const char*, std::string>> texts;  ///< contents of files of /proc/PID
  MemoryMap memory;
  std::optional<Input> map;
  std::optional<Input> images;
  std::vector<Input> dumps;
  std::string vdso;
  std::uint64_t vdso_address = 0;
  std::vector<std::string> left_out;  ///< the reasons, one line each
  std::vector<SnapshotLook> parents;  ///< its ancestors, without their vdso
};

constexpr int kMaxAttempts = 5;
constexpr std::size_t kMaxModules = std::size_t{1} << 16;
constexpr std::uint64_t kMaxVdso = std::uint64_t{1} << 20;

/// False if the process has ended. A file that is not `needed` may be unreadable.
Result<bool> take_text(const ProcSource& process, const char* file, bool needed,
                       SnapshotLook& look) {
  auto text = process.text_of(file);
  if (!text && !needed) {
    if (text.error().code != Errc::not_found) look.left_out.push_back(text.error().message());
    return true;
  }
  if (!text) return failure(text);
  if (!*text) return false;
  look.texts.emplace_back(file, **std::move(text));
  return true;
}

/// If the main thread has ended, another one was read, with times of its own: this corrects them.
void mend_stat(const ProcSource& process, SnapshotLook& look) {
  for (auto& [file, text] : look.texts) {
    if (std::string_view(file) != "stat") continue;
    const std::optional<StatLine> line = parse_stat(text);
    if (line && line->start == process.start() && line->lives()) return;
    text = std::to_string(process.pid()) + " (" + look.status.comm + ") S " +
           std::to_string(look.status.parent) + " 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
           std::to_string(process.start()) + "\n";
  }
}

Result<bool> take_texts(const ProcSource& process, const SnapshotOptions& options,
                        SnapshotLook& look) {
  for (const char* file : {"maps", "status", "stat", "comm", "auxv", "cmdline"}) {
    const std::string_view name = file;
    if (name == "cmdline" && !options.with_command_line) continue;
    const bool needed = name == "maps" || name == "status" || name == "stat";
    Result<bool> taken = take_text(process, file, needed, look);
    if (!taken || !*taken) return taken;
  }
  return true;
}

bool has_file(const SnapshotLook& look, const FileFacts& file) noexcept {
  const auto is_same = [&file](const Input& one) {
    return one.facts().device == file.device && one.facts().inode == file.inode;
  };
  return (look.map && is_same(*look.map)) ||
         std::any_of(look.dumps.begin(), look.dumps.end(), is_same);
}

bool is_believed(const ProcSource& process, const std::string& proc, const Input& input,
                 SnapshotLook& look) {
  if (!is_older_than(process, proc, input.facts())) return true;
  // A child has its parent's dump mapped as well.
  const bool is_parents =
      std::any_of(look.parents.begin(), look.parents.end(),
                  [&](const SnapshotLook& parent) { return has_file(parent, input.facts()); });
  if (!is_parents)
    look.left_out.push_back(
        Error::cannot("use", input.name(), Reason::older_than_process).message());
  return false;
}

void find_files(const ProcSource& process, const Roots& roots, bool any_owner, SnapshotLook& look) {
  Result<Input> map = find_process_map(process.pid(), roots, any_owner);
  if (map && is_believed(process, roots.proc, *map, look)) look.map = *std::move(map);
  if (!map && map.error().code != Errc::not_found) look.left_out.push_back(map.error().message());
  Result<Input> images = find_process_images(process.pid(), roots, any_owner);
  if (images && is_believed(process, roots.proc, *images, look)) look.images = *std::move(images);
  if (!images && images.error().code != Errc::not_found) {
    look.left_out.push_back(images.error().message());
  }
  ProcessDumps dumps = find_process_dumps(process.pid(), roots, any_owner);
  for (const Error& refused : dumps.refused) look.left_out.push_back(refused.message());
  for (Input& dump : dumps.dumps) {
    if (is_believed(process, roots.proc, dump, look)) look.dumps.push_back(std::move(dump));
  }
  for (SnapshotLook& parent : look.parents) {  // store each file once
    if (parent.map && has_file(look, parent.map->facts())) parent.map.reset();
    std::erase_if(parent.dumps, [&](const Input& dump) { return has_file(look, dump.facts()); });
  }
}

void take_vdso(const ProcSource& process, SnapshotLook& look) {
  for (const Region& region : look.memory.regions) {
    if (region.file->kind != RegionKind::vdso) continue;
    auto bytes = process.read_memory({region.range.begin, std::min(region.range.size, kMaxVdso)});
    if (!bytes) look.left_out.push_back("[vdso]: " + bytes.error().message());
    if (!bytes || !*bytes || (*bytes)->empty()) return;
    look.vdso = **std::move(bytes);
    look.vdso_address = region.range.begin;
    return;
  }
}

/// Without files. False if the process has ended.
Result<bool> look_at_process(const ProcSource& process, const SnapshotOptions& options,
                             MappedFiles& files, SnapshotLook& look) {
  look.pid = process.pid();
  const auto image = process.image_id();
  if (!image) return failure(image);
  const Result<bool> taken = take_texts(process, options, look);
  if (!taken) return failure(taken);
  auto status = process.status();
  if (!status) return failure(status);
  if (!*image || !*taken || !*status) return false;
  look.image = **image;
  look.status = **std::move(status);
  mend_stat(process, look);
  look.memory = parse_memory_map(look.texts.front().second, files);
  if (auto executable = process.executable(); executable && *executable) {
    look.executable = **std::move(executable);
  }
  return true;
}

/// Reads the ancestors whose sources name memory that the process inherited.
void look_at_parents(const ProcSource& process, const Roots& roots, const SnapshotOptions& options,
                     MappedFiles& files, SnapshotLook& look) {
  for (const ProcSource& parent : living_parents(process, roots)) {
    SnapshotLook its;
    const Result<bool> seen = look_at_process(parent, options, files, its);
    if (!seen) look.left_out.push_back(seen.error().message());
    if (!seen || !*seen || its.image != look.image) return;
    find_files(parent, roots, options.any_owner, its);
    if (!parent.is_alive()) return;
    for (std::string& why : its.left_out) look.left_out.push_back(std::move(why));
    look.parents.push_back(std::move(its));
  }
}

/// One attempt. Nothing if the process has ended.
Result<std::optional<SnapshotLook>> look_once(const ProcSource& process, const Roots& roots,
                                              const SnapshotOptions& options, MappedFiles& files) {
  SnapshotLook look;
  const Result<bool> seen = look_at_process(process, options, files, look);
  if (!seen) return failure(seen);
  if (!*seen) return std::nullopt;
  take_vdso(process, look);
  look_at_parents(process, roots, options, files, look);
  find_files(process, roots, options.any_owner, look);
  return look;
}

SnapshotModule described(const MappedFile& file, const Module* module) {
  SnapshotModule described{.path = file.name,
                           .build_id = {},
                           .size = 0,
                           .was_deleted = file.kind == RegionKind::deleted_file};
  if (module == nullptr) return described;
  described.build_id = module->build_id();
  described.size = module->bytes().size();
  return described;
}

/// Nothing if it is not an ELF file, or an unreadable file without code.
std::optional<SnapshotModule> module_of(const ProcSource& process, const Region& region) {
  auto input = process.open_region(region);
  if (input && *input) {
    const auto module = Module::open(**std::move(input));
    if (module) return described(*region.file, module->get());
    if (module.error().code == Errc::bad_format) return std::nullopt;
  }
  if (!region.access.execute) return std::nullopt;
  return described(*region.file, nullptr);
}

/// Nothing if the process has ended.
Result<std::optional<SnapshotLook>> look_for_snapshot(const ProcSource& process, const Roots& roots,
                                                      const SnapshotOptions& options,
                                                      MappedFiles& files) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    auto look = look_once(process, roots, options, files);
    if (!look || !*look) return look;
    const auto image = process.image_id();
    if (!image) return failure(image);
    if (!*image) return std::nullopt;
    if (**image == (*look)->image) return look;
  }
  const std::string pid = std::to_string(process.pid());
  return Failure(Error::io("process " + pid + " executes new programs too often to be examined"));
}

/// The mapped ELF files, by path.
std::vector<SnapshotModule> modules_of(const ProcSource& process, const SnapshotLook& look) {
  // The region used to open a file: one with code, because that may not be left out.
  std::unordered_map<const MappedFile*, const Region*> shown;
  for (const Region& region : look.memory.regions) {
    if (!region.file->is_file() || shown.size() >= kMaxModules) continue;
    const Region*& known = shown[region.file.get()];
    if (known == nullptr || region.access.execute) known = &region;
  }
  std::vector<SnapshotModule> modules;
  for (const auto& [file, region] : shown) {
    if (auto module = module_of(process, *region)) modules.push_back(*std::move(module));
  }
  if (!look.vdso.empty()) {
    const auto vdso = Module::open(Input::from_text(look.vdso, "[vdso]"));
    if (vdso) modules.push_back(described(classify_mapping("[vdso]"), vdso->get()));
  }
  std::sort(modules.begin(), modules.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return modules;
}

constexpr std::int64_t kSecond = 1'000'000'000;

/// Writes the collected data into a tree, and describes it in the manifest.
class SnapshotWriter {
 public:
  SnapshotWriter(const ProcSource& process, const Roots& roots, const SnapshotOptions& options,
                 NewTree& tree)
      : process_(process), roots_(roots), tree_(tree), room_(options.max_bytes) {}

  Result<void> write(SnapshotLook& look);
  Result<void> write_manifest_file();
  SnapshotManifest& manifest() noexcept { return manifest_; }

 private:
  Result<void> write_machine();
  Result<void> write_process(const SnapshotLook& look);
  Result<void> write_texts(const SnapshotLook& look);
  Result<void> write_file(SnapshotFile::Kind kind, const std::string& path, const Input& input,
                          std::string_view text, std::uint64_t whole);
  Result<void> write_vdso(const SnapshotLook& look);
  static std::string directory(const SnapshotLook& look) {
    return "proc/" + std::to_string(look.pid);
  }
  std::string place_of_dump(const Input& dump, const SnapshotLook& look) const;
  void describe(SnapshotLook& look);

  const ProcSource& process_;
  const Roots& roots_;
  NewTree& tree_;
  std::uint64_t room_;
  SnapshotManifest manifest_;
};

void SnapshotWriter::describe(SnapshotLook& look) {
  utsname kernel{};
  ::uname(&kernel);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  manifest_.pid = process_.pid();
  manifest_.namespace_pids = look.status.namespace_tgids;
  if (manifest_.namespace_pids.empty()) manifest_.namespace_pids = {process_.pid()};
  manifest_.comm = look.status.comm;
  manifest_.executable = look.executable;
  manifest_.uid = look.status.uid;
  manifest_.start = process_.start();
  manifest_.boot_ns = boot_time_ns(roots_.proc);
  manifest_.taken_at_ns = now.tv_sec * kSecond + now.tv_nsec;
  manifest_.kernel = kernel.release;
  manifest_.machine = kernel.machine;
  manifest_.left_out = std::move(look.left_out);
  for (const SnapshotLook& parent : look.parents) manifest_.parents.push_back(parent.pid);
}

Result<void> SnapshotWriter::write_texts(const SnapshotLook& look) {
  for (const auto& [file, text] : look.texts) {
    Result<void> written = tree_.write(directory(look) + "/" + file, text);
    if (!written) return written;
  }
  if (!look.executable.empty()) {
    Result<void> linked = tree_.link(directory(look) + "/exe", look.executable);
    if (!linked) return linked;
  }
  return {};
}

Result<void> SnapshotWriter::write_machine() {
  // The boot time, because start times of processes count from there.
  const std::string boot = "btime " + std::to_string(manifest_.boot_ns / kSecond) + "\n";
  Result<void> written = tree_.write("proc/stat", boot);
  return written ? tree_.make_directory("tmp") : written;
}

Result<void> SnapshotWriter::write_file(SnapshotFile::Kind kind, const std::string& path,
                                        const Input& input, std::string_view text,
                                        std::uint64_t whole) {
  if (text.size() > room_) text = text.substr(0, room_);
  const bool has_lines = kind == SnapshotFile::Kind::map || kind == SnapshotFile::Kind::images;
  if (has_lines) text = text.substr(0, text.rfind('\n') + 1);
  Result<void> written = tree_.write(path, text, input.facts().mtime_ns);
  // Fails like this if the source file of a mapping was truncated.
  const int failed = written ? 0 : written.error().sys_errno;
  if (input.was_truncated() || failed == EFAULT) {
    tree_.remove(path);
    manifest_.left_out.push_back(input.name() + " was truncated while it was copied");
    return {};
  }
  // The path is chosen by the process that mapped the file, so it may be unusable.
  if (failed == EEXIST || failed == EINVAL || failed == ENAMETOOLONG || failed == ENOTDIR) {
    manifest_.left_out.push_back(input.name() + " has a path that cannot be copied");
    return {};
  }
  if (!written) return written;
  room_ -= text.size();
  SnapshotFile file{.kind = kind, .path = path, .source = input.name()};
  file.owner = input.facts().uid;
  file.mtime_ns = input.facts().mtime_ns;
  file.size = text.size();
  file.cut = whole - text.size();
  manifest_.files.push_back(std::move(file));
  return {};
}

/// A mapped dump is placed at its path from "maps", where readers look for it; any other dump under
/// the name for its pid.
std::string SnapshotWriter::place_of_dump(const Input& dump, const SnapshotLook& look) const {
  const std::string root = roots_.proc + "/" + std::to_string(look.pid) + "/root";
  std::string_view path = dump.name();
  if (path.starts_with(root + "/")) path.remove_prefix(root.size());
  const auto& regions = look.memory.regions;
  const bool is_mapped = std::any_of(regions.begin(), regions.end(), [path](const Region& region) {
    return region.file->kind == RegionKind::file && region.file->name == path;
  });
  if (is_mapped) return directory(look) + "/root" + std::string(path);
  return "tmp/" + kDumpName.of(look.pid);
}

Result<void> SnapshotWriter::write_vdso(const SnapshotLook& look) {
  if (look.vdso.empty()) return {};
  Result<void> written = tree_.write("vdso.so", look.vdso);
  if (!written) return written;
  SnapshotFile file{.kind = SnapshotFile::Kind::vdso, .path = "vdso.so", .source = "[vdso]"};
  file.size = look.vdso.size();
  file.address = look.vdso_address;
  manifest_.files.push_back(std::move(file));
  return {};
}

Result<void> SnapshotWriter::write_process(const SnapshotLook& look) {
  Result<void> written = write_texts(look);
  if (written && look.map) {
    // Like a growing map: whole lines only, without the filler of a mapped writer.
    const Map map(*look.map, {.growing = true});
    const std::string path = "tmp/" + kMapName.of(look.pid);
    const std::string_view text = map.text();
    const std::uint64_t whole = map.ends_in_part() ? map.input().text().size() : text.size();
    written = write_file(SnapshotFile::Kind::map, path, map.input(), text, whole);
  }
  if (written && look.images) {
    const std::string path = "tmp/" + kImagesName.of(look.pid);
    const std::string_view text = look.images->text();
    written = write_file(SnapshotFile::Kind::images, path, *look.images, text, text.size());
  }
  for (const Input& dump : look.dumps) {
    if (!written) return written;
    const std::string path = place_of_dump(dump, look);
    written = write_file(SnapshotFile::Kind::dump, path, dump, dump.text(), dump.text().size());
  }
  return written;
}

Result<void> SnapshotWriter::write(SnapshotLook& look) {
  describe(look);
  Result<void> written = write_machine();
  if (written) written = write_process(look);
  for (const SnapshotLook& parent : look.parents) {
    if (written) written = write_process(parent);
  }
  if (written) written = write_vdso(look);
  if (written) manifest_.modules = modules_of(process_, look);
  return written;
}

Result<void> SnapshotWriter::write_manifest_file() {
  const Result<Descriptor> fd = tree_.create("manifest.json");
  if (!fd) return failure(fd);
  OutputFile out = OutputFile::to_descriptor(fd->get(), "manifest.json");
  write_manifest(manifest_, out);
  return out.flush();
}

SnapshotEnd end_of(const ProcSource& process, const SnapshotLook& look) {
  const auto image = process.image_id();
  if (!process.is_alive()) return SnapshotEnd::ended;
  const bool executed = image && *image && **image != look.image;
  return executed ? SnapshotEnd::executed : SnapshotEnd::lives;
}

}  // namespace

Result<std::optional<TakenSnapshot>> take_snapshot(const ProcSource& process, const Roots& roots,
                                                   const std::string& directory,
                                                   const SnapshotOptions& options) {
  Result<NewTree> tree = NewTree::begin(directory);
  if (!tree) return failure(tree);
  MappedFiles files;
  auto look = look_for_snapshot(process, roots, options, files);
  if (!look) return failure(look);
  if (!*look) return std::nullopt;
  SnapshotWriter writer(process, roots, options, *tree);
  if (Result<void> written = writer.write(**look); !written) return failure(written);
  TakenSnapshot taken;
  taken.end = end_of(process, **look);
  taken.regions = (*look)->memory.regions.size();
  if (Result<void> written = writer.write_manifest_file(); !written) return failure(written);
  if (Result<void> published = tree->publish(); !published) return failure(published);
  taken.manifest = std::move(writer.manifest());
  return taken;
}

}  // namespace perfmap
