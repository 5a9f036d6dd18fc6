// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <new>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "archive/tar_header.hpp"
#include "base/directory.hpp"
#include "perfmap/jit_format.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/archive.hpp"

namespace perfmap {
namespace {

/// Compresses what is written, as one frame that states its size and has a checksum.
class ZstdWriter {
 public:
  ZstdWriter(OutputFile& out, std::uint64_t size) : out_(out), context_(ZSTD_createCCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(context_.get(), size);
  }

  void write(std::string_view bytes) { pass(bytes, ZSTD_e_continue); }
  void finish() { pass({}, ZSTD_e_end); }
  /// Whether the bytes were more or fewer than the stated size.
  bool failed() const noexcept { return failed_; }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  };

  void pass(std::string_view bytes, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (std::size_t left = 1;
         !failed_ && (in.pos != in.size || (how == ZSTD_e_end && left != 0));) {
      char* const room = out_.room(OutputFile::kRoom);
      ZSTD_outBuffer to{room, OutputFile::kRoom, 0};
      left = ZSTD_compressStream2(context_.get(), &to, &in, how);
      failed_ = ZSTD_isError(left) != 0;
      out_.wrote(to.pos);
    }
  }

  OutputFile& out_;
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  bool failed_ = false;
};

/// A file of the directory that is archived.
struct Member {
  std::string path;  ///< in the directory
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
};

Descriptor open_directory(int at, const char* path) noexcept {
  return Descriptor(::openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  visit_names(directory, ".", [&names](const char* name) {
    names.emplace_back(name);
    return true;
  });
  std::ranges::sort(names);
  return names;
}

std::optional<Member> member_at(int directory, const std::string& path) {
  struct stat status {};
  if (::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1'000'000'000;
  return Member{path, static_cast<std::uint64_t>(status.st_size),
                status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec};
}

std::vector<Member> members_of(int directory) {
  std::vector<Member> members;
  for (const std::string& name : names_in(directory)) {
    if (auto member = member_at(directory, name)) members.push_back(*std::move(member));
  }
  return members;
}

/// "rec" for "dir/rec.tar.zst".
std::string root_of(const std::string& path) {
  std::string name(base_name(path));
  if (name.ends_with(kArchiveSuffix)) name.resize(name.size() - kArchiveSuffix.size());
  return name.empty() || name == "." || name == ".." ? "recording" : name;
}

/// The headers of the archive, in the order of its entries; then, for the end, two empty blocks.
std::vector<std::string> headers_of(const std::vector<Member>& members, const std::string& root,
                                    std::int64_t now_ns) {
  std::vector<std::string> headers;
  std::string before = tar_blocks({root + "/", tar_type::kDirectory, 0, now_ns});
  for (const Member& member : members) {
    before += tar_blocks({root + "/" + member.path, tar_type::kFile, member.size, member.mtime_ns});
    headers.push_back(std::exchange(before, {}));
  }
  headers.push_back(before + std::string(2 * kTarBlock, '\0'));
  return headers;
}

Result<void> write_data(int directory, const Member& member, const std::string& name,
                        ZstdWriter& to) {
  const auto failure = [&](int error) { return Failure(system_error("cannot read", name, error)); };
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(::openat(directory, member.path.c_str(), kFlags));
  if (!file.is_open()) return failure(errno);
  std::vector<char> part(std::size_t{256} << 10);
  std::uint64_t left = member.size;
  while (left != 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, part.size()));
    const ssize_t got = ::read(file.get(), part.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(errno);
    if (got == 0) return Failure(Error::of(Reason::truncated, name));
    to.write({part.data(), static_cast<std::size_t>(got)});
    left -= static_cast<std::uint64_t>(got);
  }
  to.write(std::string(tar_padding(member.size), '\0'));
  return {};
}

}  // namespace

Result<std::vector<std::string>> write_archive(const std::string& directory,
                                               const std::string& path) {
  const Descriptor from = open_directory(AT_FDCWD, directory.c_str());
  struct stat status {};
  if (!from.is_open() || ::fstat(from.get(), &status) != 0) {
    return Failure(system_error("cannot open", directory, errno));
  }
  Result<OutputFile> out = OutputFile::replace(path);
  if (!out) return failure(out);
  out->make_private();
  const std::vector<Member> members = members_of(from.get());
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::vector<std::string> headers =
      headers_of(members, root_of(path), status.st_mtim.tv_sec * kSecond);
  std::uint64_t size = 0;
  for (const std::string& header : headers) size += header.size();
  for (const Member& member : members) size += member.size + tar_padding(member.size);
  ZstdWriter to(*out, size);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < members.size(); ++i) {
    to.write(headers[i]);
    const Result<void> done =
        write_data(from.get(), members[i], directory + "/" + members[i].path, to);
    if (!done) return failure(done);
    paths.push_back(members[i].path);
  }
  to.write(headers.back());
  to.finish();
  if (to.failed()) return Failure(Error::told(Errc::internal, "cannot compress " + path));
  const Result<void> written = out->commit();
  if (!written) return failure(written);
  return paths;
}

}  // namespace perfmap
