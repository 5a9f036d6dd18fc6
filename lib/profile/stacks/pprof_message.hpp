// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/types.hpp"

/// What reading pprof profiles needs: their messages, and limits for hostile ones.

namespace perfmap {

/// The field numbers of pprof's messages.
/// Source: github.com/google/pprof, proto/profile.proto.
namespace pprof {
enum Profile : std::uint32_t {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  default_sample_type = 14,
};
}  // namespace pprof

/// Iterates over the fields of a protobuf message; never reads past hostile bytes. Groups, which
/// are obsolete, are rejected.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) noexcept : rest_(message) {}

  /// False at the end, and at an invalid field: see ok().
  bool next() noexcept {
    if (rest_.empty() || !ok_) return false;
    const std::string_view begin = rest_;
    const std::uint64_t tag = varint();
    field_ = static_cast<std::uint32_t>(tag >> 3);
    bytes_ = {};
    number_ = 0;
    switch (tag & 7) {
      case 0: number_ = varint(); break;
      case 1: take(8); break;
      case 2: take(varint()); break;
      case 5: take(4); break;
      default: ok_ = false;
    }
    is_bytes_ = (tag & 7) == 2;
    is_number_ = (tag & 7) == 0;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) ok_ = false;
    whole_ = begin.substr(0, begin.size() - rest_.size());
    return ok_;
  }

  bool ok() const noexcept { return ok_; }
  /// Whether the invalid field would go on after the end of the bytes.
  bool is_cut_off() const noexcept { return is_cut_off_; }
  std::uint32_t field() const noexcept { return field_; }
  bool is_number() const noexcept { return is_number_; }  ///< a varint
  bool is_bytes() const noexcept { return is_bytes_; }    ///< a string, a message, packed numbers
  std::uint64_t number() const noexcept { return number_; }
  std::string_view bytes() const noexcept { return bytes_; }
  /// The complete field with its tag.
  std::string_view whole() const noexcept { return whole_; }

  /// Calls `visit(number)` for each number of a repeated field, packed or not.
  template <class Visit>
  void numbers(Visit visit) noexcept(noexcept(visit(0))) {
    if (is_number_) visit(number_);
    if (!is_bytes_) return;
    ProtoReader packed(bytes_);
    while (!packed.rest_.empty() && packed.ok_) {
      const std::uint64_t number = packed.varint();
      if (packed.ok_) visit(number);
    }
    ok_ = ok_ && packed.ok_;
  }

 private:
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift < 64) value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
    is_cut_off_ = rest_.empty();
    ok_ = false;
    return 0;
  }
  void take(std::uint64_t size) noexcept {
    is_cut_off_ = is_cut_off_ || size > rest_.size();
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return;
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  std::string_view bytes_;
  std::string_view whole_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  bool is_bytes_ = false;
  bool is_number_ = false;
  bool is_cut_off_ = false;
  bool ok_ = true;
};

/// A field that is a number, and where it goes.
struct NumberField {
  std::uint32_t field;
  std::uint64_t* number;
};

/// Reads a message whose fields are numbers, and passes each field to `other` as well. False if the
/// message is malformed, or `other` returned false.
template <class Other>
bool read_message(std::string_view message, std::initializer_list<NumberField> numbers,
                  Other other) {
  ProtoReader reader(message);
  while (reader.next()) {
    for (const auto& [field, number] : numbers) {
      if (field == reader.field()) *number = reader.number();
    }
    if (!other(reader)) return false;
  }
  return reader.ok();
}

inline bool read_message(std::string_view message, std::initializer_list<NumberField> numbers) {
  return read_message(message, numbers, [](const ProtoReader&) { return true; });
}

/// Finds numbers by id: in constant time if the ids count up, as those of most profiles do, and in
/// O(log n) for any others. Ids of a hostile file could all have the same hash.
class IdTable {
 public:
  struct Row {
    std::uint64_t id;
    std::uint64_t number;
  };

  /// If an id occurs several times, its first number counts.
  void add(std::uint64_t id, std::uint64_t number) { rows_.push_back({id, number}); }
  /// Call it after the last add().
  void sort() {
    const auto is_before = [](const Row& a, const Row& b) { return a.id < b.id; };
    if (!std::is_sorted(rows_.begin(), rows_.end(), is_before)) {
      std::stable_sort(rows_.begin(), rows_.end(), is_before);
    }
    const auto is_same = [](const Row& a, const Row& b) { return a.id == b.id; };
    rows_.erase(std::unique(rows_.begin(), rows_.end(), is_same), rows_.end());
  }
  std::optional<std::uint64_t> find(std::uint64_t id) const noexcept {
    if (rows_.empty()) return std::nullopt;
    const std::uint64_t guess = id - rows_.front().id;
    if (guess < rows_.size() && rows_[guess].id == id) return rows_[guess].number;
    const auto found =
        std::lower_bound(rows_.begin(), rows_.end(), id,
                         [](const Row& row, std::uint64_t wanted) { return row.id < wanted; });
    const bool is_there = found != rows_.end() && found->id == id;
    return is_there ? std::optional(found->number) : std::nullopt;
  }

 private:
  std::vector<Row> rows_;
};

/// Limits the memory for objects, because a compressed profile may consist of millions of messages
/// without contents.
class ObjectBudget {
 public:
  explicit ObjectBudget(std::uint64_t bytes) noexcept : bytes_(bytes), left_(bytes) {}

  /// Call it before the object is made. False if the budget does not allow it.
  [[nodiscard]] bool spend(std::uint64_t bytes) noexcept {
    is_exceeded_ = is_exceeded_ || bytes > left_;
    if (!is_exceeded_) left_ -= bytes;
    return !is_exceeded_;
  }
  /// Adds an element if the budget allows it.
  template <class T>
  [[nodiscard]] bool add(std::vector<T>& list, const T& element) {
    if (!spend(sizeof(T))) return false;
    list.push_back(element);
    return true;
  }
  [[nodiscard]] bool add(IdTable& table, std::uint64_t id, std::uint64_t number) {
    if (!spend(sizeof(IdTable::Row))) return false;
    table.add(id, number);
    return true;
  }
  bool is_exceeded() const noexcept { return is_exceeded_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::uint64_t bytes_;
  std::uint64_t left_;
  bool is_exceeded_ = false;
};

/// A process or thread id, as the number or the text of a label.
std::optional<pid_t> id_of_label(std::uint64_t number, std::string_view text) noexcept;

/// Whether the name of a mapping means that only a runtime has code there.
bool is_jit_memory(std::string_view file, bool has_build_id);

inline Error joined_profiles() {
  return Error::bad_format("a sample has not one value of each type, as if profiles were joined");
}
inline Error not_a_profile() { return Error::bad_format("it is not a pprof profile"); }

inline Error too_many_objects(std::uint64_t size, const ObjectBudget& budget) {
  return Error::too_large("it needs more than " + std::to_string(budget.bytes() >> 20) +
                          " MiB of memory, too much for a profile of " + std::to_string(size) +
                          " bytes");
}

/// How much may be made of a profile; see PprofNaming.
struct PprofLimits {
  std::uint64_t max_times = 64;
  std::uint64_t max_bytes = std::uint64_t{1} << 30;

  /// The limit for what is made of a profile of `size` bytes: `max_times` its size, but at least
  /// 64 MiB, and at most `max`.
  std::uint64_t of(std::uint64_t size, std::uint64_t max) const noexcept {
    constexpr std::uint64_t kSmall = std::uint64_t{64} << 20;
    return std::min(std::max(kSmall, size * max_times), max);
  }
  std::uint64_t of_expanded(std::uint64_t size) const noexcept { return of(size, max_bytes); }
  std::uint64_t of_objects(std::uint64_t size) const noexcept {
    // A location of 20 bytes needs 80 of memory.
    constexpr std::uint64_t kMaxGrowth = 8;
    return of(size, std::max(max_bytes, size * kMaxGrowth));
  }
};

}  // namespace perfmap
