#include "snapshots/snapshot_look.hpp"

#include <algorithm>
#include <unordered_map>

#include "perfmap/living_parents.hpp"
#include "perfmap/module.hpp"
#include "processes/proc_text.hpp"
#include "processes/start_time.hpp"

namespace perfmap {
namespace {

constexpr int kMostAttempts = 5;
constexpr std::size_t kMostModules = std::size_t{1} << 16;
constexpr std::uint64_t kMostVdso = std::uint64_t{1} << 20;

/// False where the process is gone. What is not `needed` may be forbidden.
Result<bool> take_text(const ProcSource& process, const char* file, bool needed,
                       SnapshotLook& look) {
  auto text = process.text_of(file);
  if (!text && !needed) {
    if (text.error().code != Errc::not_found) look.left_out.push_back(text.error().message);
    return true;
  }
  if (!text) return Failure(std::move(text.error()));
  if (!*text) return false;
  look.texts.emplace_back(file, **std::move(text));
  return true;
}

/// Where the first thread has ended, another one was asked, which has times of its own.
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
  // A child has its parent's dump mapped, too.
  const bool is_parents =
      std::any_of(look.parents.begin(), look.parents.end(),
                  [&](const SnapshotLook& parent) { return has_file(parent, input.facts()); });
  if (!is_parents) look.left_out.push_back(input.name() + " is older than its process");
  return false;
}

void find_files(const ProcSource& process, const Roots& roots, bool any_owner, SnapshotLook& look) {
  Result<Input> map = find_process_map(process.pid(), roots, any_owner);
  if (map && is_believed(process, roots.proc, *map, look)) look.map = *std::move(map);
  if (!map && map.error().code != Errc::not_found) look.left_out.push_back(map.error().message);
  ProcessDumps dumps = find_process_dumps(process.pid(), roots, any_owner);
  for (const Error& refused : dumps.refused) look.left_out.push_back(refused.message);
  for (Input& dump : dumps.dumps) {
    if (is_believed(process, roots.proc, dump, look)) look.dumps.push_back(std::move(dump));
  }
  for (SnapshotLook& parent : look.parents) {  // each file once
    if (parent.map && has_file(look, parent.map->facts())) parent.map.reset();
    std::erase_if(parent.dumps, [&](const Input& dump) { return has_file(look, dump.facts()); });
  }
}

void take_vdso(const ProcSource& process, SnapshotLook& look) {
  for (const Region& region : look.memory.regions) {
    if (region.file->kind != RegionKind::vdso) continue;
    auto bytes = process.read_memory({region.range.begin, std::min(region.range.size, kMostVdso)});
    if (!bytes) look.left_out.push_back("[vdso]: " + bytes.error().message);
    if (!bytes || !*bytes || (*bytes)->empty()) return;
    look.vdso = **std::move(bytes);
    look.vdso_address = region.range.begin;
    return;
  }
}

/// Without files. False where the process is gone.
Result<bool> look_at_process(const ProcSource& process, const SnapshotOptions& options,
                             MappedFiles& files, SnapshotLook& look) {
  look.pid = process.pid();
  const auto image = process.image_id();
  if (!image) return Failure(image.error());
  const Result<bool> taken = take_texts(process, options, look);
  if (!taken) return Failure(taken.error());
  auto status = process.status();
  if (!status) return Failure(std::move(status.error()));
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

/// What names the memory that the process has from them.
void look_at_parents(const ProcSource& process, const Roots& roots, const SnapshotOptions& options,
                     MappedFiles& files, SnapshotLook& look) {
  for (const ProcSource& parent : living_parents(process, roots)) {
    SnapshotLook its;
    const Result<bool> seen = look_at_process(parent, options, files, its);
    if (!seen) look.left_out.push_back(seen.error().message);
    if (!seen || !*seen || its.image != look.image) return;
    find_files(parent, roots, options.any_owner, its);
    if (!parent.is_alive()) return;
    for (std::string& why : its.left_out) look.left_out.push_back(std::move(why));
    look.parents.push_back(std::move(its));
  }
}

/// One try. Nothing where the process is gone.
Result<std::optional<SnapshotLook>> look_once(const ProcSource& process, const Roots& roots,
                                              const SnapshotOptions& options, MappedFiles& files) {
  SnapshotLook look;
  const Result<bool> seen = look_at_process(process, options, files, look);
  if (!seen) return Failure(seen.error());
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

/// Nothing where it is no ELF file, or one that nobody can open and that has no code.
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

}  // namespace

Result<std::optional<SnapshotLook>> look_for_snapshot(const ProcSource& process, const Roots& roots,
                                                      const SnapshotOptions& options,
                                                      MappedFiles& files) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    auto look = look_once(process, roots, options, files);
    if (!look || !*look) return look;
    const auto image = process.image_id();
    if (!image) return Failure(image.error());
    if (!*image) return std::nullopt;
    if (**image == (*look)->image) return look;
  }
  const std::string pid = std::to_string(process.pid());
  return Failure({Errc::io, "process " + pid + " runs one program after the other", 0, {}});
}

std::vector<SnapshotModule> modules_of(const ProcSource& process, const SnapshotLook& look) {
  // The region by which a file is opened: one with code, as that cannot be left out.
  std::unordered_map<const MappedFile*, const Region*> shown;
  for (const Region& region : look.memory.regions) {
    if (!region.file->is_file() || shown.size() >= kMostModules) continue;
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

}  // namespace perfmap
