#include "diagnosis/found_file.hpp"

#include <cerrno>
#include <optional>
#include <sys/stat.h>

#include "diagnosis/doctor_view.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

std::string_view kind_of(std::uint32_t mode) noexcept {
  if (S_ISFIFO(mode)) return "a FIFO, no file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

FileFate fate_of(const Error& error) noexcept {
  if (error.code == Errc::not_found) return FileFate::missing;
  if (error.code == Errc::too_large) return FileFate::too_large;
  if (error.code != Errc::refused) return FileFate::unreadable;
  return error.sys_errno == ELOOP ? FileFate::link : FileFate::not_regular;
}

/// What stands behind the last ": " of an error's message.
std::string reason_of(const Error& error) {
  const std::size_t colon = error.message.rfind(": ");
  return colon == std::string::npos ? error.message : error.message.substr(colon + 2);
}

void note_damage(const DumpDamage& damage, LookedFor& file) {
  if (damage.lost == 0) return;
  file.is_cut_off = damage.lost == 1 && damage.is_cut_off;
  std::string what = "a record is damaged or cut off";
  if (damage.lost != 1) what = std::to_string(damage.lost) + " records are damaged or cut off";
  if (file.is_cut_off) what = "the last record is cut off";
  file.damage = std::string(rule::kDamagedRecord.id) + ": " + what + ", at byte " +
                std::to_string(damage.first);
}

}  // namespace

OpenPolicy found_file_policy() {
  return {.follow_link = false, .regular_only = true, .bounded = true};
}

Result<FileFacts> look_at_path(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return Failure(system_error("cannot find " + path, errno));
  }
  return facts_of(status);
}

void set_fate(const Error& error, LookedFor& file) {
  file.fate = fate_of(error);
  file.why = file.fate == FileFate::too_large ? "too large to be believed"
                                              : "cannot be read: " + reason_of(error);
}

LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good) {
  LookedFor file;
  file.path = place.path;
  file.our_path = place.our_path;
  const Result<FileFacts> facts = judge.look(place);
  if (!facts) {
    const bool missing = fate_of(facts.error()) == FileFate::missing;
    file.fate = missing ? FileFate::missing : FileFate::unreachable;
    file.why = missing ? "not there" : "cannot be looked for: " + reason_of(facts.error());
  } else if (facts->was_link) {
    file.fate = FileFate::link;
    file.why = "a symbolic link, which anybody may have put there: not followed";
  } else if (!facts->is_regular) {
    file.fate = FileFate::not_regular;
    file.why = kind_of(facts->mode);
  } else if (Result<Input> input = judge.open(place); input) {
    file.fate = FileFate::used;
    judge.object(*input, file);
    if (file.fate == FileFate::used && input->text().empty()) {
      file.fate = FileFate::empty;
      file.why = "empty";
    }
    if (file.fate == FileFate::used) *good = *std::move(input);
  } else {
    set_fate(input.error(), file);
  }
  return file;
}

void take_map(Input input, LookedFor& file, Coverage& coverage) {
  Diagnostics ignored(1);
  Map(std::move(input), {.growing = true}).for_each(ignored, [&](const Entry& entry) {
    ++file.entries;
    coverage.add(entry.range);
  });
}

void take_dump(Input input, LookedFor& file, Coverage& coverage, bool is_growing) {
  Diagnostics ignored(1);
  const Jitdump dump(std::move(input), {.growing = is_growing});
  Jitdump::Reader reader(dump);
  while (const std::optional<JitRecord> record = reader.next(ignored)) {
    if (const auto load = decode_load(*record)) {
      ++file.entries;
      coverage.add(load->range);
    } else if (const auto move = decode_move(*record)) {
      coverage.add(move->range);
    }
  }
  if (!dump.header()) {
    file.damage = std::string(rule::kNotJitdump.id) + ": " + std::string(rule::kNotJitdump.summary);
    return;
  }
  note_damage(reader.damage(), file);
}

bool is_dump_of_number(std::string_view path) noexcept {
  std::string_view name = base_name(path);
  if (!name.starts_with("jit-") || !name.ends_with(".dump")) return false;
  name = name.substr(4, name.size() - 9);
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace perfmap
