#include "stacks/recorded_owner.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "perfmap/jitdump.hpp"
#include "processes/safe_open.hpp"
#include "processes/start_time.hpp"

namespace perfmap {
namespace {

const OpenPolicy kFoundFile{
    .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};

bool has_name(const ProcSource& source, const std::string& comm) {
  const auto status = source.status();
  return status && *status && (*status)->comm == comm;
}

}  // namespace

Result<CandidateFile> open_candidate(const std::string& path, bool is_dump) {
  // Opened by its descriptor: what was looked at is what is read.
  const OwnedFd found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return Failure(system_error("cannot open " + path, errno));
  const Result<OwnedFd> fd = open_found(found, path);
  if (!fd) return Failure(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) {
    return Failure(system_error("cannot open " + path, errno));
  }
  Result<Input> input = Input::from_descriptor(fd->get(), path, kFoundFile);
  if (!input) return Failure(std::move(input.error()));
  constexpr std::int64_t kSecond = 1'000'000'000;
  return CandidateFile{*std::move(input), is_dump, status.st_nlink,
                       status.st_ctim.tv_sec * kSecond + status.st_ctim.tv_nsec};
}

std::optional<ProcSource> find_living(const ProcessInfo& process, RecordedLives* lives,
                                      const Roots& roots) {
  if (lives == nullptr || !lives->is_of_this_machine()) return std::nullopt;
  auto source = ProcSource::open(process.pid, roots);
  if (!source || !*source) return std::nullopt;
  const std::int64_t start = start_time_ns(**source, roots.proc);
  if (!lives->may_have_begun(process, start, kTimeSlack)) return std::nullopt;
  if (!lives->is_exact() && !has_name(**source, process.comm)) return std::nullopt;
  return *std::move(source);
}

std::string objection_to(const CandidateFile& file, const ProcessInfo& process,
                         RecordedLives* lives) {
  if (file.links != 1) return "it has " + std::to_string(file.links) + " links";
  const auto life = lives != nullptr ? lives->life_of(process) : std::nullopt;
  if (!life) return "nothing tells when the process lived";
  const std::int64_t written = file.input.facts().mtime_ns;
  if (written + kTimeSlack < life->begin) return "it was last written before the process was seen";
  if (std::max(written, file.changed_ns) - kTimeSlack > life->end) {
    return "it was changed after the process was seen last";
  }
  if (!file.is_dump) return {};
  const auto header = Jitdump(file.input).header();
  if (!header) return "it is no jitdump";
  if (header->pid == static_cast<std::uint32_t>(process.pid)) return {};
  return "its header names process " + std::to_string(header->pid);
}

}  // namespace perfmap
