// SPDX-License-Identifier: MIT
#include "archive/archive_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <unordered_set>
#include <vector>

#include "archive/tar_header.hpp"
#include "base/descriptor.hpp"
#include "elf/compression.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/archive.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kBuffer = std::size_t{128} << 10;

Failure failed(Errc code, std::string why, int sys_errno = 0) {
  return Failure(Error::told(code, std::move(why)).with_errno(sys_errno));
}
Failure damaged(std::string why) { return failed(Errc::bad_format, std::move(why)); }
Failure torn() { return damaged("it is truncated (copy it again)"); }

/// How many bytes the files of an archive of that size may have.
std::uint64_t max_bytes_of(std::uint64_t size, const ArchiveLimits& limits) noexcept {
  constexpr std::uint64_t kSmall = std::uint64_t{64} << 20;
  const std::uint64_t factor = std::max<std::uint64_t>(limits.max_expansion, 1);
  const std::uint64_t expanded = size > UINT64_MAX / factor ? UINT64_MAX : size * factor;
  return std::min(limits.max_bytes, std::max(kSmall, expanded));
}

/// The bytes of an archive, expanded while they are read.
class ExpandedBytes {
 public:
  explicit ExpandedBytes(ReadBytes read) : read_(std::move(read)), buffer_(kBuffer, '\0') {}

  /// Fills `to`; fewer bytes only at the end.
  Result<std::size_t> read(std::span<char> to) {
    std::size_t done = 0;
    while (done < to.size()) {
      const Result<std::size_t> got = read_some(to.subspan(done));
      if (!got) return got;
      if (*got == 0) break;
      done += *got;
    }
    return done;
  }

 private:
  enum class Packing : std::uint8_t { unknown, none, zstd, gzip };

  /// At the end of the file `pending_` stays empty.
  Result<void> refill() {
    if (!pending_.empty() || at_end_) return {};
    ssize_t got = -1;
    do {
      got = read_(std::span(buffer_.data(), buffer_.size()));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return Failure(system_error("cannot read it", "", errno));
    at_end_ = got == 0;
    pending_ = {buffer_.data(), static_cast<std::size_t>(got)};
    if (packing_ != Packing::unknown) return {};
    const SourceKind kind = detect_kind(pending_);
    packing_ = kind == SourceKind::zstd   ? Packing::zstd
               : kind == SourceKind::gzip ? Packing::gzip
                                          : Packing::none;
    return {};
  }

  Result<std::size_t> read_some(std::span<char> to) {
    for (;;) {
      const Result<void> filled = refill();
      if (!filled) return failure(filled);
      if (packing_ == Packing::none) return copy(to);
      const ExpansionStep step =
          packing_ == Packing::zstd ? zstd_.step(pending_, to) : gzip_.step(pending_, to);
      if (step.is_damaged) {
        return damaged("its compressed data are damaged, or need a window of more than 128 MiB");
      }
      pending_.remove_prefix(step.taken);
      if (step.taken != 0 || step.made != 0) is_in_frame_ = !step.ends_frame;
      if (step.made != 0) return step.made;
      if (step.taken != 0 || !at_end_) continue;
      return is_in_frame_ ? Result<std::size_t>(torn()) : Result<std::size_t>(0);
    }
  }

  std::size_t copy(std::span<char> to) {
    const std::size_t count = std::min(to.size(), pending_.size());
    std::copy_n(pending_.begin(), count, to.begin());
    pending_.remove_prefix(count);
    return count;
  }

  ReadBytes read_;
  std::string buffer_;
  std::string_view pending_;
  bool at_end_ = false;
  bool is_in_frame_ = true;
  Packing packing_ = Packing::unknown;
  ZstdStream zstd_;
  GunzipStream gzip_;
};

/// An entry of a path: its directory, without "." and empty components, and its name.
struct EntryPath {
  std::string directory;
  std::string name;

  std::string whole() const { return directory.empty() ? name : directory + "/" + name; }
};

Result<EntryPath> parse_path(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return failed(Errc::refused, "its name '" + path + "' " + why);
  };
  if (path.size() >= PATH_MAX) return failed(Errc::refused, "a name in it is too long");
  if (path.find('\0') != path.npos) return failed(Errc::refused, "a name in it has a null byte");
  if (path.starts_with('/')) return refused("is absolute");
  EntryPath parsed;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part == "..") return refused("leads out of the directory");
    if (part.size() > NAME_MAX) return failed(Errc::refused, "a name in it is too long");
    if (part.empty() || part == ".") continue;
    parsed.directory = parsed.whole();
    parsed.name = part;
  }
  return parsed;
}

/// What an entry is that a recording directory does not have; empty for files and directories.
std::string_view objection_to(char type) noexcept {
  switch (type) {
    case tar_type::kFile:
    case tar_type::kOldFile:
    case tar_type::kContiguousFile:
    case tar_type::kDirectory: return "";
    case tar_type::kHardLink: return "a hard link";
    case tar_type::kSymbolicLink: return "a symbolic link";
    case tar_type::kCharacterDevice:
    case tar_type::kBlockDevice: return "a device";
    case tar_type::kFifo: return "a FIFO";
    case tar_type::kGnuSparse: return "a sparse file";
    default: return "an entry of an unknown type";
  }
}

/// Reads the entries of an archive.
class ArchiveReader {
 public:
  ArchiveReader(ReadBytes read, std::uint64_t size, const ArchiveLimits& limits,
                ArchiveReceiver& receiver)
      : bytes_(std::move(read)),
        limits_(limits),
        max_bytes_(max_bytes_of(size, limits)),
        receiver_(receiver) {}

  Result<void> run();

 private:
  /// What the blocks before an entry say about it.
  struct Pending {
    PaxRecords pax;
    std::string long_name;
    bool is_any = false;
  };

  /// False at the end of the archive.
  Result<bool> read_block(std::span<char> block);
  Result<void> read_end();
  Result<void> take_header(TarHeader header);
  Result<bool> take_extension(const TarHeader& header);
  Result<std::string> read_text(std::uint64_t size);
  Result<void> take_entry(const TarHeader& header);
  Result<void> take_directory(const EntryPath& path, const TarHeader& header);
  Result<void> take_file(const EntryPath& path, const TarHeader& header);
  Failure too_large() const;
  Result<void> place_file(const EntryPath& path);
  Result<void> pass_data(std::uint64_t size);
  Result<void> skip_padding(std::uint64_t size);
  Result<void> check_tree() const;

  ExpandedBytes bytes_;
  ArchiveLimits limits_;
  std::uint64_t max_bytes_;
  ArchiveReceiver& receiver_;
  Pending pending_;
  std::uint64_t headers_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_of_files_ = 0;
  std::optional<std::string> base_;  // the directory of the files
  std::set<std::string> directories_;
  std::unordered_set<std::string> names_;
};

Result<bool> ArchiveReader::read_block(std::span<char> block) {
  const Result<std::size_t> got = bytes_.read(block);
  if (!got) return failure(got);
  if (*got != block.size()) return torn();
  return std::ranges::any_of(block, [](char c) { return c != '\0'; });
}

/// After the two blocks of zeros, tar fills its last record with more of them.
Result<void> ArchiveReader::read_end() {
  constexpr std::size_t kMaxFill = std::size_t{1} << 20;
  std::vector<char> rest(kMaxFill + 1);
  Result<bool> has_any = read_block(std::span(rest).first(kTarBlock));
  if (!has_any) return failure(has_any);
  if (*has_any) return damaged("a header in it is damaged");
  const Result<std::size_t> got = bytes_.read(rest);
  if (!got) return failure(got);
  const auto more = std::span(rest).first(*got);
  const bool is_fill = std::ranges::all_of(more, [](char c) { return c == '\0'; });
  if (!is_fill || *got > kMaxFill) return damaged("there are bytes after its end");
  return {};
}

Result<void> ArchiveReader::run() {
  constexpr std::uint64_t kHeadersOfEntry = 4;
  std::array<char, kTarBlock> block{};
  for (;;) {
    const Result<bool> has_any = read_block(block);
    if (!has_any) return failure(has_any);
    if (!*has_any) break;
    std::optional<TarHeader> header = parse_tar_header({block.data(), block.size()});
    if (!header) return damaged("a header in it is damaged");
    if (++headers_ > kHeadersOfEntry * limits_.max_entries) {
      return failed(Errc::too_large, "it has too many headers");
    }
    Result<void> taken = take_header(*std::move(header));
    if (!taken) return taken;
  }
  if (pending_.is_any) return torn();
  Result<void> ended = read_end();
  if (!ended) return ended;
  return check_tree();
}

/// The text of an extension.
Result<std::string> ArchiveReader::read_text(std::uint64_t size) {
  constexpr std::uint64_t kMaxText = std::uint64_t{1} << 20;
  if (size > kMaxText) return failed(Errc::too_large, "a header in it is too large");
  std::string text(static_cast<std::size_t>(size), '\0');
  const Result<std::size_t> got = bytes_.read(text);
  if (!got) return failure(got);
  if (*got != text.size()) return torn();
  const Result<void> skipped = skip_padding(size);
  if (!skipped) return failure(skipped);
  return text;
}

/// False if the header is that of an entry.
Result<bool> ArchiveReader::take_extension(const TarHeader& header) {
  const bool is_pax = header.type == tar_type::kPax || header.type == tar_type::kGlobalPax;
  const bool is_long =
      header.type == tar_type::kGnuLongName || header.type == tar_type::kGnuLongLink;
  if (!is_pax && !is_long) return false;
  Result<std::string> text = read_text(header.size);
  if (!text) return failure(text);
  if (header.type == tar_type::kGlobalPax) {
    PaxRecords global;
    if (!parse_pax(*text, global)) return damaged("a header in it is damaged");
    const bool is_used = global.path || global.size || global.mtime_ns || global.is_sparse;
    if (is_used) return failed(Errc::refused, "it has a pax header that changes all later entries");
    return true;
  }
  pending_.is_any = true;
  if (is_pax && !parse_pax(*text, pending_.pax)) return damaged("a header in it is damaged");
  if (header.type == tar_type::kGnuLongName) pending_.long_name = text->substr(0, text->find('\0'));
  return true;
}

Result<void> ArchiveReader::take_header(TarHeader header) {
  const Result<bool> is_extension = take_extension(header);
  if (!is_extension) return failure(is_extension);
  if (*is_extension) return {};
  const Pending about = std::exchange(pending_, {});
  if (!about.long_name.empty()) header.name = about.long_name;
  if (about.pax.path) header.name = *about.pax.path;
  if (about.pax.size) header.size = *about.pax.size;
  if (about.pax.mtime_ns) header.mtime_ns = *about.pax.mtime_ns;
  if (about.pax.is_sparse) header.type = tar_type::kGnuSparse;
  return take_entry(header);
}

Result<void> ArchiveReader::take_entry(const TarHeader& header) {
  if (const std::string_view what = objection_to(header.type); !what.empty()) {
    return failed(Errc::refused, "'" + header.name + "' is " + std::string(what));
  }
  if (++entries_ > limits_.max_entries) {
    return failed(Errc::too_large,
                  "it has more than " + std::to_string(limits_.max_entries) + " entries");
  }
  const Result<EntryPath> path = parse_path(header.name);
  if (!path) return failure(path);
  const bool is_directory =
      header.type == tar_type::kDirectory || header.name.ends_with('/') || path->name.empty();
  return is_directory ? take_directory(*path, header) : take_file(*path, header);
}

Result<void> ArchiveReader::take_directory(const EntryPath& path, const TarHeader& header) {
  // Those above the directory, and itself.
  constexpr std::size_t kMaxDirectories = 64;
  if (header.size != 0) return damaged("the directory '" + header.name + "' in it has data");
  directories_.insert(path.whole());
  if (directories_.size() <= kMaxDirectories) return {};
  return failed(Errc::refused, "it has too many directories; a recording has one");
}

/// All files are in one directory, the first one's.
Result<void> ArchiveReader::place_file(const EntryPath& path) {
  if (!base_) base_ = path.directory;
  if (*base_ != path.directory) {
    return failed(Errc::refused, "it has files in several directories, such as '" + path.whole() +
                                     "'; a recording has one");
  }
  if (!names_.insert(path.name).second) {
    return failed(Errc::refused, "it has two files with the name '" + path.name + "'");
  }
  return {};
}

Failure ArchiveReader::too_large() const {
  std::string why = "its files have more than " + std::to_string(max_bytes_ >> 20) + " MiB";
  if (max_bytes_ < limits_.max_bytes) why += ", which no recording of its size has";
  return failed(Errc::too_large, std::move(why));
}

Result<void> ArchiveReader::take_file(const EntryPath& path, const TarHeader& header) {
  Result<void> done = place_file(path);
  if (!done) return done;
  if (header.size > max_bytes_ - bytes_of_files_) return too_large();
  bytes_of_files_ += header.size;
  done = receiver_.begin({path.name, header.size, header.mtime_ns});
  if (done) done = pass_data(header.size);
  if (done) done = receiver_.end();
  if (done) done = skip_padding(header.size);
  return done;
}

Result<void> ArchiveReader::pass_data(std::uint64_t size) {
  std::vector<char> part(static_cast<std::size_t>(std::min<std::uint64_t>(size, kBuffer)));
  while (size != 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, part.size()));
    const Result<std::size_t> got = bytes_.read(std::span(part).first(wanted));
    if (!got) return failure(got);
    if (*got != wanted) return torn();
    Result<void> added = receiver_.add({part.data(), wanted});
    if (!added) return added;
    size -= wanted;
  }
  return {};
}

Result<void> ArchiveReader::skip_padding(std::uint64_t size) {
  std::array<char, kTarBlock> rest{};
  const std::size_t wanted = tar_padding(size);
  const Result<std::size_t> got = bytes_.read(std::span(rest).first(wanted));
  if (!got) return failure(got);
  return *got == wanted ? Result<void>() : torn();
}

/// Whether `path` is that directory, or one above it.
bool leads_to(const std::string& path, const std::string& directory) {
  return path.empty() || path == directory || directory.starts_with(path + "/");
}

Result<void> ArchiveReader::check_tree() const {
  if (!base_ || !names_.contains("perf.data")) {
    return damaged("it is no archive of a recording: it has no perf.data");
  }
  for (const std::string& path : directories_) {
    if (leads_to(path, *base_)) continue;
    return failed(Errc::refused, "it has a directory '" + path + "', which no recording has");
  }
  return {};
}

/// Writes files into a directory.
class DirectoryReceiver final : public ArchiveReceiver {
 public:
  explicit DirectoryReceiver(Descriptor directory) : directory_(std::move(directory)) {}

  Result<void> begin(const ArchivedFile& file) override {
    struct statvfs space {};
    if (::fstatvfs(directory_.get(), &space) == 0) {
      const std::uint64_t unit = std::max<std::uint64_t>(space.f_frsize, 1);
      if (file.size / unit >= space.f_bavail) {
        const std::uint64_t free = std::min(space.f_bavail, UINT64_MAX / unit) * unit;
        return failed(Errc::io,
                      "'" + file.name + "' has " + std::to_string(file.size) + " bytes, and " +
                          std::to_string(free) + " are free",
                      ENOSPC);
      }
    }
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    current_ = file;
    file_ = Descriptor(::openat(directory_.get(), file.name.c_str(), kFlags, 0600));
    return file_.is_open() ? Result<void>() : failure();
  }
  Result<void> add(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failure();
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }
  Result<void> end() override {
    constexpr std::int64_t kSecond = 1'000'000'000;
    timespec time{};
    time.tv_sec = static_cast<time_t>(current_.mtime_ns / kSecond);
    time.tv_nsec = static_cast<long>(current_.mtime_ns % kSecond);
    const timespec times[2] = {time, time};
    const bool done = ::futimens(file_.get(), times) == 0;
    Result<void> result = done ? Result<void>() : failure();
    file_ = Descriptor();
    return result;
  }

 private:
  Failure failure() const {
    return Failure(system_error("cannot write", "'" + current_.name + "'", errno));
  }

  Descriptor directory_;
  Descriptor file_;
  ArchivedFile current_;
};

/// Not open unless the path leads to a regular file.
Descriptor open_regular(const std::string& path) {
  struct stat status {};
  // Not opened if it is something else: that would have effects on a FIFO or a device.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    errno = errno == 0 ? EINVAL : errno;
    return {};
  }
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

ReadBytes reader_of(int fd) {
  return [fd](std::span<char> to) { return ::read(fd, to.data(), to.size()); };
}

}  // namespace

Result<void> read_archive(ArchiveInput input, const ArchiveLimits& limits,
                          ArchiveReceiver& receiver) {
  Result<void> done = ArchiveReader(std::move(input.read), input.size, limits, receiver).run();
  if (!done) done.error().prefix("cannot unpack " + input.name + ": ");
  return done;
}

bool is_archive(const std::string& path) {
  const Descriptor file = open_regular(path);
  struct stat status {};
  // Size 0: also files of procfs, which may be read only once.
  const bool has_bytes = ::fstat(file.get(), &status) == 0 && status.st_size > 0;
  if (!has_bytes) return false;
  ExpandedBytes bytes(reader_of(file.get()));
  std::array<char, kTarBlock> block{};
  const Result<std::size_t> got = bytes.read(block);
  return got && begins_tar({block.data(), *got});
}

Result<void> unpack_archive(const std::string& path, const std::string& directory,
                            const ArchiveLimits& limits) {
  const Descriptor file = open_regular(path);
  if (!file.is_open()) return Failure(system_error("cannot open", path, errno));
  Descriptor to(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!to.is_open()) return Failure(system_error("cannot open", directory, errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Failure(system_error("cannot read", path, errno));
  DirectoryReceiver receiver(std::move(to));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return read_archive({reader_of(file.get()), path, size}, limits, receiver);
}

}  // namespace perfmap
