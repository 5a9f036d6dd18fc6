#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "modules/target.hpp"
#include "perfmap/address.hpp"

namespace perfmap {

/// .eh_frame_hdr, used where it lies: a sorted table of the FDEs of .eh_frame. What it says is a
/// hint: whoever uses an FDE that it names must see whether that is one. Borrows the bytes.
/// Source: Linux Standard Base 5.0, "The .eh_frame_hdr section".
class EhFrameHeader {
 public:
  /// Nothing where it is damaged or unsorted, or has no table, or one of another encoding than the
  /// one that linkers write (4 bytes, relative to the header). O(n).
  static std::optional<EhFrameHeader> read(std::string_view bytes, Address address,
                                           const Target& target) noexcept;

  /// Where .eh_frame is.
  Address frames() const noexcept { return frames_; }

  struct Entry {
    Address code = 0;
    Address fde = 0;
    Address next = UINT64_MAX;  ///< where the code of the next entry begins
  };
  /// The last entry whose code begins at or before `vaddr`. O(log n).
  std::optional<Entry> find(Address vaddr) const noexcept;
  std::uint64_t size() const noexcept { return count_; }

 private:
  Address at(std::uint64_t offset) const noexcept;
  Address code(std::uint64_t i) const noexcept { return at(i * 8); }
  bool is_sorted() const noexcept;

  std::string_view table_;
  Address address_ = 0;
  Address last_ = UINT64_MAX;
  bool swapped_ = false;
  std::uint64_t count_ = 0;
  Address frames_ = 0;
};

}  // namespace perfmap
