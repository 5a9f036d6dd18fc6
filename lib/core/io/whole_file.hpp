#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"

namespace perfmap {

/// A file that appears under its name when it is whole, and not at all if the process dies before.
/// Allocates nothing. Functions answer 0 or an errno value.
class WholeFile {
 public:
  WholeFile() = default;
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  /// Begins the file that will be at `path`, which is kept: without a name, or, where the file
  /// system has no such files or there is no /proc, with a hidden one in the same directory.
  int create(const char* path) noexcept;
  int append(std::string_view bytes) noexcept;
  /// The whole lines among the first `size` bytes of `source`, whose position does not move.
  int append_lines(int source, std::uint64_t size) noexcept;
  /// EEXIST where something is there already.
  int publish() noexcept;

  std::uint64_t size() const noexcept { return size_; }
  int descriptor() const noexcept { return fd_.get(); }
  /// Opened for reading and for appending.
  Descriptor take() noexcept { return std::move(fd_); }

 private:
  int create_named() noexcept;
  void drop_hidden() noexcept;
  static constexpr std::size_t kMaxPath = 4096;

  Descriptor fd_;
  const char* path_ = nullptr;
  char hidden_[kMaxPath] = {};  // the name until then; empty: none
  std::uint64_t size_ = 0;
};

}  // namespace perfmap
