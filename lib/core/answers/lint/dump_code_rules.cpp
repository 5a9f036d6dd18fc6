#include "answers/lint/dump_code_rules.hpp"

#include <algorithm>

#include "answers/lint/dump_rules.hpp"
#include "jitdump/lifetimes.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

// Where the fields of LOAD and MOVE lie.
constexpr std::uint64_t kLoadIndexAt = 48;
constexpr std::uint64_t kMoveFromAt = 32;
constexpr std::uint64_t kMoveSizeAt = 48;
constexpr std::uint64_t kMoveIndexAt = 56;

struct Named {
  std::uint64_t index;
  std::uint64_t offset;
};
constexpr std::uint64_t kMoveFlag = std::uint64_t{1} << 63;  // in Named::offset

/// The code of each placement as it goes from place to place.
class Moves {
 public:
  Moves(const Jitdump& dump, const CodeEvents& placements, Diagnostics& problems)
      : dump_(dump), placements_(placements), problems_(problems) {
    moved_at_.resize(placements.moves == 0 ? 0 : placements.count());
    now_.resize(moved_at_.size());
    for (std::size_t i = 0; i < now_.size(); ++i) now_[i] = static_cast<std::uint32_t>(i);
  }

  /// JD209.
  void check() {
    auto found = placements_.moved.begin();
    for (std::uint32_t i = 0; i < now_.size(); ++i) {
      if (!placements_.is_move(i)) continue;
      const auto move = decode<MoveRecord>(i, decode_move);
      if (!move) continue;
      if (found == placements_.moved.end() || found->placement != i) {
        report(problems_, rule::kOddMove, placements_.record(i) + kMoveFromAt, [&] {
          return "nothing was at " + hex_text(move->old_address) +
                 ", and no code before has index " + std::to_string(move->code_index);
        });
        continue;
      }
      check_one(i, *move, found->load);
      moved_at_[now_[found->load]] = placements_.time[i];
      now_[found->load] = i;
      ++found;
    }
  }

  /// Whether the end of the piece is a MOVE of its code.
  bool ended_by_move(const CodeLifetime& piece) const {
    return !moved_at_.empty() && moved_at_[piece.placement] == piece.to;
  }

 private:
  template <class Record, class Decode>
  std::optional<Record> decode(std::uint32_t placement, Decode decode_record) const {
    const auto record = dump_.record_at(placements_.record(placement));
    return record ? decode_record(*record) : std::nullopt;
  }

  void check_one(std::uint32_t i, const MoveRecord& move, std::uint32_t loaded) const {
    const auto load = decode<LoadRecord>(loaded, decode_load);
    const std::uint64_t offset = placements_.record(i);
    if (!load) return;
    if (const Address was = placements_.begin[now_[loaded]]; was != move.old_address) {
      report(problems_, rule::kOddMove, offset + kMoveFromAt, [&] {
        return "code " + std::to_string(move.code_index) + " was at " + hex_text(was) +
               ", not at " + hex_text(move.old_address);
      });
    } else if (move.code_index != load->code_index) {
      report(problems_, rule::kOddMove, offset + kMoveIndexAt, [&] {
        return "what was at " + hex_text(move.old_address) + " has code index " +
               std::to_string(load->code_index) + ", not " + std::to_string(move.code_index);
      });
    } else if (move.code_size != load->code_size) {
      report(problems_, rule::kOddMove, offset + kMoveSizeAt, [&] {
        return "a size of " + std::to_string(move.code_size) + ", but it was loaded with " +
               std::to_string(load->code_size);
      });
    }
  }

  const Jitdump& dump_;
  const CodeEvents& placements_;
  Diagnostics& problems_;
  std::vector<std::uint64_t> moved_at_;  // when a placement's code left it; 0: it did not
  std::vector<std::uint32_t> now_;       // of each LOAD, the placement where its code is
};

/// JD304, once.
void check_reuse(const CodeEvents& placements, const CodeLifetimes& pieces, const Moves& moves,
                 Diagnostics& problems) {
  std::vector<bool> overwritten(placements.count());
  std::uint64_t count = 0;
  std::uint64_t first = UINT64_MAX;
  for (const CodeLifetime& piece : pieces.all) {
    if (piece.to == Timeline::kEnd || overwritten[piece.placement] || moves.ended_by_move(piece)) {
      continue;
    }
    overwritten[piece.placement] = true;
    ++count;
    first = std::min(first, placements.record(piece.placement));
  }
  if (count == 0) return;
  report(problems, rule::kOverlappingCode, first, [&] {
    return std::to_string(count) + " of " + std::to_string(placements.count()) +
           " pieces of code, this one first, were written over later: only times tell whose an "
           "address was";
  });
}

void check_indices(const Jitdump& dump, Diagnostics& problems) {
  if (problems.ignores(rule::kReusedIndex)) return;
  for (const ReusedIndex& one : read_indices(dump).reused) {
    report(problems, rule::kReusedIndex, one.offset + kLoadIndexAt, [&] {
      return "code index " + std::to_string(one.index) + " is that of the LOAD at " +
             place_text(one.first) + ", too: perf writes both to one file";
    });
  }
}

}  // namespace

CodeIndices read_indices(const Jitdump& dump) {
  MmapVector<Named> named;
  CodeIndices indices;
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (const auto load = decode_load(record)) named.push_back({load->code_index, record.offset});
    if (const auto move = decode_move(record)) {
      named.push_back({move->code_index, record.offset | kMoveFlag});
      ++indices.moves;
    }
  });
  // LOADs before MOVEs, by offset.
  std::sort(named.data(), named.data() + named.size(), [](const Named& a, const Named& b) {
    return a.index != b.index ? a.index < b.index : a.offset < b.offset;
  });
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (i == 0 || named[i].index != named[i - 1].index) {
      indices.used.push_back(named[i].index);
      first = named[i].offset;
    } else if ((named[i].offset & kMoveFlag) == 0) {
      indices.reused.push_back({named[i].offset, first, named[i].index});
    }
  }
  std::sort(indices.reused.begin(), indices.reused.end(),
            [](const ReusedIndex& a, const ReusedIndex& b) { return a.offset < b.offset; });
  return indices;
}

void check_code(const Jitdump& dump, Diagnostics& problems) {
  check_indices(dump, problems);
  if (problems.ignores(rule::kOddMove) && problems.ignores(rule::kOverlappingCode)) return;
  Diagnostics ignored(1);
  const CodeEvents placements = read_placements(dump, std::nullopt, ignored);
  const CodeLifetimes pieces = make_pieces(placements);
  Moves moves(dump, placements, problems);
  moves.check();
  check_reuse(placements, pieces, moves, problems);
}

}  // namespace perfmap::lint_rules
