// SPDX-License-Identifier: MIT
// Any bytes are an archive of a recording directory, or are refused with a reason. The files of one
// have names that are one component of a path, each once, and exactly the stated number of bytes,
// within the limits. Reading in other pieces gives the same files.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "archive/archive_reader.hpp"

namespace {

using namespace perfmap;

constexpr ArchiveLimits kLimits{.max_bytes = std::uint64_t{4} << 20, .max_entries = 100};

void require(bool holds) {
  if (!holds) std::abort();
}

class Collecting final : public ArchiveReceiver {
 public:
  Result<void> begin(const ArchivedFile& file) override {
    require(!is_open_ && !file.name.empty() && file.name != "." && file.name != "..");
    require(file.name.size() <= 255 && file.mtime_ns >= 0);
    require(file.name.find_first_of(std::string_view("/\0", 2)) == file.name.npos);
    require(files.try_emplace(file.name).second && files.size() <= kLimits.max_entries);
    total_ += file.size;
    require(total_ <= kLimits.max_bytes);
    current_ = file;
    is_open_ = true;
    return {};
  }
  Result<void> add(std::string_view bytes) override {
    std::string& text = files[current_.name];
    text += bytes;
    require(is_open_ && !bytes.empty() && text.size() <= current_.size);
    return {};
  }
  Result<void> end() override {
    require(is_open_ && files[current_.name].size() == current_.size);
    is_open_ = false;
    return {};
  }
  bool is_complete() const { return !is_open_; }

  std::map<std::string, std::string> files;

 private:
  ArchivedFile current_;
  std::uint64_t total_ = 0;
  bool is_open_ = false;
};

ReadBytes pieces_of(std::string_view bytes, std::size_t piece) {
  return [bytes, piece](std::span<char> to) mutable {
    const std::size_t size = std::min({bytes.size(), to.size(), piece});
    bytes.copy(to.data(), size);
    bytes.remove_prefix(size);
    return static_cast<ssize_t>(size);
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Collecting whole;
  const Result<void> done =
      read_archive({pieces_of(bytes, SIZE_MAX), "fuzz", size}, kLimits, whole);
  if (done) {
    require(whole.is_complete() && whole.files.contains("perf.data"));
  } else {
    require(done.error().message().starts_with("cannot unpack fuzz: "));
  }
  // The kind of compression is known by the first piece.
  Collecting again;
  const Result<void> other =
      read_archive({pieces_of(bytes, 4096 + size / 7), "fuzz", size}, kLimits, again);
  require(other.has_value() == done.has_value() && again.files == whole.files);
  return 0;
}
