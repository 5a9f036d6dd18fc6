#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "perfmap/address.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/doubt.hpp"
#include "perfmap/export.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jit_details.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// Why an address has no name.
enum class Unresolved : std::uint8_t {
  not_covered,  ///< no source has code there
  before_load,  ///< a jitdump has, but only after the time asked for
  unreadable,   ///< a source has, and was cut off since
};
/// "not-covered", "before-load", "unreadable".
PERFMAP_API std::string_view to_string(Unresolved why) noexcept;

/// What an address was called.
struct ResolvedName {
  std::string_view name;     ///< borrowed from the source; see Input
  AddressRange range;        ///< all of the code, where it lay then
  std::size_t source = 0;    ///< position among the maps, or maps().size() + that among the dumps
  std::uint64_t offset = 0;  ///< of the map's line, or of the LOAD record, in the source
  Address address_at_load = 0;  ///< where the code at the address was when it was loaded
  Doubts doubts = {};

  friend bool operator==(const ResolvedName&, const ResolvedName&) = default;
};

/// What is doubtful about an entry of a map by itself: its size was cut, or its line looks damaged,
/// as where two writes met on one. O(name).
PERFMAP_API Doubts doubts_of(const Map& map, const Entry& entry) noexcept;

/// A name, or why there is none.
struct Resolution {
  std::optional<ResolvedName> found;
  Unresolved why = Unresolved::not_covered;  ///< where nothing was found
};

/// An address at a time; see Timeline for times.
struct Query {
  Address address = 0;
  std::uint64_t time = Timeline::kEnd;
};

/// Names addresses by several sources together: jitdumps, which know what was where at what time,
/// and perf maps, which know what was there at the end. A jitdump is asked before every map, and no
/// map where one knows that code came there only later; of
/// several jitdumps the later ones before the earlier; the maps share one index.
///
/// Const members may be used from several threads, but for lines().
class PERFMAP_API Resolver {
 public:
  /// Times O(n log n) in the lines and records. `problems` gets what makes no sense in the maps,
  /// `record_problems` what makes none in the dumps.
  Resolver(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap,
           Diagnostics& problems, Diagnostics& record_problems);
  Resolver(Resolver&&) noexcept;
  Resolver& operator=(Resolver&&) noexcept;
  ~Resolver();

  std::span<const Map> maps() const noexcept;
  std::span<const Timeline> timelines() const noexcept;
  /// The input of a ResolvedName's source.
  const Input& input(std::size_t source) const noexcept;

  /// O(log n) for each dump and for the index; see Timeline::find() and Index::find().
  Resolution find(const Query& query) const noexcept;
  /// The same for many; both spans have the same length. Faster than one by one where there are
  /// only maps, most of all when the addresses ascend.
  void find_all(std::span<const Query> queries, std::span<Resolution> answers) const;

  /// Takes in what was appended to the sources, as far as each can: replaced where one was, else
  /// appended. Of several failures the first; the other sources are refreshed all the same. Names
  /// found before stay valid only where it answers unchanged. See Index::refresh() and
  /// Timeline::refresh().
  Result<Growth> refresh(Diagnostics& problems, Diagnostics& record_problems);

  /// The source lines of the function that was found, at the addresses it had at its LOAD: for
  /// line_at() with ResolvedName::address_at_load. Empty for maps. The lines of the function asked
  /// for last are kept; the view lives until the next call. One thread at a time.
  const std::vector<CodeLine>& lines(const ResolvedName& name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
