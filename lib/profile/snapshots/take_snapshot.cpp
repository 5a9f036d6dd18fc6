#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sys/utsname.h>

#include "perfmap/map.hpp"
#include "perfmap/snapshot.hpp"
#include "processes/start_time.hpp"
#include "snapshots/new_tree.hpp"
#include "snapshots/snapshot_look.hpp"

namespace perfmap {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Puts what was seen into a tree, and says in the manifest what that is.
class SnapshotWriter {
 public:
  SnapshotWriter(const ProcSource& process, const Roots& roots, const SnapshotOptions& options,
                 NewTree& tree)
      : process_(process), roots_(roots), tree_(tree), room_(options.most_bytes) {}

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
  // Where the machine's times begin, as those of a process count from there.
  const std::string boot = "btime " + std::to_string(manifest_.boot_ns / kSecond) + "\n";
  Result<void> written = tree_.write("proc/stat", boot);
  return written ? tree_.make_directory("tmp") : written;
}

Result<void> SnapshotWriter::write_file(SnapshotFile::Kind kind, const std::string& path,
                                        const Input& input, std::string_view text,
                                        std::uint64_t whole) {
  if (text.size() > room_) text = text.substr(0, room_);
  if (kind == SnapshotFile::Kind::map) text = text.substr(0, text.rfind('\n') + 1);
  Result<void> written = tree_.write(path, text, input.facts().mtime_ns);
  // Writing from a mapping that has lost its file fails so.
  const int failed = written ? 0 : written.error().sys_errno;
  if (input.was_truncated() || failed == EFAULT) {
    tree_.remove(path);
    manifest_.left_out.push_back(input.name() + " was truncated while it was copied");
    return {};
  }
  // Whoever maps a file chooses its path.
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

/// Those that are mapped are looked for where they are, by the paths in "maps"; any other by its
/// pid's name.
std::string SnapshotWriter::place_of_dump(const Input& dump, const SnapshotLook& look) const {
  const std::string root = roots_.proc + "/" + std::to_string(look.pid) + "/root";
  std::string_view path = dump.name();
  if (path.starts_with(root + "/")) path.remove_prefix(root.size());
  const auto& regions = look.memory.regions;
  const bool is_mapped = std::any_of(regions.begin(), regions.end(), [path](const Region& region) {
    return region.file->kind == RegionKind::file && region.file->name == path;
  });
  if (is_mapped) return directory(look) + "/root" + std::string(path);
  return "tmp/jit-" + std::to_string(look.pid) + ".dump";
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
    // As a map that grows: whole lines, and not the filler of a writer that maps the file.
    const Map map(*look.map, {.growing = true});
    const std::string path = "tmp/perf-" + std::to_string(look.pid) + ".map";
    const std::string_view text = map.text();
    const std::uint64_t whole = map.ends_in_part() ? map.input().text().size() : text.size();
    written = write_file(SnapshotFile::Kind::map, path, map.input(), text, whole);
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
  const Result<OwnedFd> fd = tree_.create("manifest.json");
  if (!fd) return Failure(fd.error());
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
  if (!tree) return Failure(std::move(tree.error()));
  MappedFiles files;
  auto look = look_for_snapshot(process, roots, options, files);
  if (!look) return Failure(std::move(look.error()));
  if (!*look) return std::nullopt;
  SnapshotWriter writer(process, roots, options, *tree);
  if (Result<void> written = writer.write(**look); !written) return Failure(written.error());
  TakenSnapshot taken;
  taken.end = end_of(process, **look);
  taken.regions = (*look)->memory.regions.size();
  if (Result<void> written = writer.write_manifest_file(); !written) {
    return Failure(written.error());
  }
  if (Result<void> published = tree->publish(); !published) return Failure(published.error());
  taken.manifest = std::move(writer.manifest());
  return taken;
}

}  // namespace perfmap
