// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "jitdump/lifetimes.hpp"
#include "lint/checks.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

using namespace lint_rules;
using Visit = std::function<void(const DumpChange&)>;

template <class Number>
std::string bytes_of(Number value, std::endian order) {
  std::string bytes(sizeof value, '\0');
  if (order != std::endian::native) {
    if constexpr (sizeof value == 4) value = __builtin_bswap32(value);
    if constexpr (sizeof value == 8) value = __builtin_bswap64(value);
  }
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Assigns code indices to records.
class Renumbering {
 public:
  explicit Renumbering(const Jitdump& dump) {
    const CodeIndices indices = read_indices(dump);
    std::uint64_t next = 1;
    auto used = std::lower_bound(indices.used.begin(), indices.used.end(), next);
    for (const ReusedIndex& one : indices.reused) {
      for (; used != indices.used.end() && *used == next; ++used) ++next;
      of_.emplace_back(one.offset, next++);
    }
    if (!of_.empty() && indices.moves != 0) follow_moves(dump);
  }

  std::optional<std::uint64_t> of(std::uint64_t offset) const {
    const auto found =
        std::lower_bound(of_.begin(), of_.end(), std::pair(offset, std::uint64_t{0}));
    if (found == of_.end() || found->first != offset) return std::nullopt;
    return found->second;
  }

 private:
  /// A MOVE gets the index of the code that the timeline says it moves.
  void follow_moves(const Jitdump& dump) {
    Diagnostics ignored(1);
    const CodeEvents placements = read_placements(dump, std::nullopt, ignored);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> moves;
    for (const CodeEvents::Move& one : placements.moved) {
      const std::uint64_t offset = placements.record(one.placement);
      const auto record = dump.record_at(offset);
      const auto move = record ? decode_move(*record) : std::nullopt;
      const auto index = index_of_load(dump, placements.record(one.load));
      if (move && index && move->code_index != *index) moves.emplace_back(offset, *index);
    }
    of_.insert(of_.end(), moves.begin(), moves.end());
    std::sort(of_.begin(), of_.end());
  }

  std::optional<std::uint64_t> index_of_load(const Jitdump& dump, std::uint64_t offset) const {
    if (const auto fresh = of(offset)) return fresh;
    const auto record = dump.record_at(offset);
    const auto load = record ? decode_load(*record) : std::nullopt;
    return load ? std::optional(load->code_index) : std::nullopt;
  }

  std::vector<std::pair<std::uint64_t, std::uint64_t>> of_;  // record offset and index; sorted
};

void change_header(const Jitdump& dump, const Visit& visit) {
  const auto& header = dump.header();
  if (!header || (header->flags & ~JitdumpHeader::kArchTimestamp) == 0) return;
  const std::uint64_t flags = header->flags & JitdumpHeader::kArchTimestamp;
  visit({&rule::kReservedFlags, 0, field::kFlags, 8, bytes_of(flags, header->order),
         "flags " + hex_text(header->flags) + " become " + hex_text(flags)});
}

DumpChange index_change(const JitRecord& record, std::uint64_t field, std::uint64_t was,
                        std::uint64_t index) {
  return {&rule::kReusedIndex,
          record.offset,
          record.offset + field,
          8,
          bytes_of(index, record.order),
          "code index " + std::to_string(was) + " becomes " + std::to_string(index)};
}

void change_move(const JitRecord& record, const Renumbering& renumbering, const Visit& visit) {
  const auto move = decode_move(record);
  const auto index = renumbering.of(record.offset);
  if (move && index) visit(index_change(record, field::kMoveIndex, move->code_index, *index));
}

/// The new name and padding of a LOAD, and the resulting size.
class LoadChange {
 public:
  LoadChange(const JitRecord& record, const LoadRecord& load) : record_(record), load_(load) {
    const std::uint64_t padding = load.padding.size();
    // If part of the code is missing, the bytes after it are not padding.
    const bool aligns = padding <= kMaxAlignment && load.code.size() == load.code_size;
    padding_ = aligns ? padding : 0;
    if (!load.name.empty() && is_utf8(load.name)) return;
    name_ = escape_map_name(load.name);
    if (new_size() > UINT32_MAX) name_.clear();
  }

  void visit_size(const Visit& visit) const {
    const std::uint64_t size = new_size();
    if (size == record_.bytes.size()) return;
    visit({renames() ? &rule::kOddLoadName : &rule::kOddPadding, record_.offset,
           record_.offset + field::kRecordSize, 4,
           bytes_of(static_cast<std::uint32_t>(size), record_.order),
           "record size " + std::to_string(record_.bytes.size()) + " becomes " +
               std::to_string(size)});
  }
  void visit_rest(const Visit& visit) const {
    if (renames()) {
      visit({&rule::kOddLoadName, record_.offset, record_.offset + LoadRecord::kFixed,
             load_.name.size(), name_,
             std::string(load_.name.empty() ? "no name" : "the name") + " becomes '" +
                 std::string(shortened(name_)) + "'"});
    }
    if (padding_ != 0) {
      visit({&rule::kOddPadding, record_.offset, record_.end() - padding_, padding_, "",
             counted(padding_, "byte") + " after the code removed"});
    }
  }

 private:
  bool renames() const noexcept { return !name_.empty(); }
  std::uint64_t new_size() const {
    const std::uint64_t grown = renames() ? name_.size() - load_.name.size() : 0;
    return record_.bytes.size() - padding_ + grown;
  }

  const JitRecord& record_;
  const LoadRecord& load_;
  std::string name_;  // empty: unchanged
  std::uint64_t padding_ = 0;
};

void change_load(const JitRecord& record, const Renumbering& renumbering, const Visit& visit) {
  const auto load = decode_load(record);
  if (!load) return;
  const LoadChange change(record, *load);
  change.visit_size(visit);
  if (const auto index = renumbering.of(record.offset)) {
    visit(index_change(record, field::kLoadIndex, load->code_index, *index));
  }
  change.visit_rest(visit);
}

void change_records(const Jitdump& dump, const Visit& visit) {
  if (!dump.header()) return;
  const Renumbering renumbering(dump);
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (record.is(JitRecordKind::load)) change_load(record, renumbering, visit);
    if (record.is(JitRecordKind::move)) change_move(record, renumbering, visit);
  });
}

using Changes = void (*)(const Jitdump&, const Visit&);

void change_all(const Jitdump& dump, const Visit& visit) {
  change_header(dump, visit);
  change_records(dump, visit);
}

std::string changed(const Jitdump& dump, Changes changes) {
  const std::string_view bytes = dump.bytes();
  std::string fixed;
  fixed.reserve(bytes.size());
  std::uint64_t at = 0;
  changes(dump, [&](const DumpChange& change) {
    fixed.append(bytes.substr(at, change.offset - at)).append(change.added);
    at = change.offset + change.removed;
  });
  return fixed.append(bytes.substr(at));
}

/// Whether both dumps give the same records.
bool reads_alike(const Jitdump& dump, const Jitdump& fixed) {
  Diagnostics ignored(1);
  Jitdump::Reader one(dump);
  Jitdump::Reader other(fixed);
  while (true) {
    const auto before = one.next(ignored);
    const auto after = other.next(ignored);
    if (!before || !after) return !before && !after && one.lost_bytes() == other.lost_bytes();
    const bool same = before->id == after->id && before->time == after->time;
    if (!same || one.lost_bytes() != other.lost_bytes()) return false;
  }
}

struct Fixed {
  Changes changes;
  std::string bytes;
};

Fixed fix(const Jitdump& dump) {
  std::string bytes = changed(dump, change_all);
  const Jitdump fixed(Input::from_text(bytes, dump.input().name()), dump.options());
  if (reads_alike(dump, fixed)) return {change_all, std::move(bytes)};
  return {change_header, changed(dump, change_header)};
}

}  // namespace

void for_each_change(const Jitdump& dump, const std::function<void(const DumpChange&)>& visit) {
  fix(dump).changes(dump, visit);
}

std::string fixed_dump(const Jitdump& dump) { return fix(dump).bytes; }

}  // namespace perfmap
