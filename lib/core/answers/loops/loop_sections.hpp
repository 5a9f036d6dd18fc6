#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/loops/loop_names.hpp"
#include "formats/pypy_lines.hpp"
#include "perfmap/compiled_loops.hpp"

namespace perfmap::loops {

/// Sections that tell of loops.
enum class Telling : std::uint8_t { nothing, addresses, operations, counts, code };
Telling telling_of(std::string_view category) noexcept;

/// A section that is open in some thread, and what its lines have been about so far.
struct OpenSection {
  static constexpr std::uint32_t kNone = CompiledLoop::kNone;

  Telling telling = Telling::nothing;
  std::uint32_t thread = PypylogEvent::kNoThread;
  PypylogTick tick = {};
  std::uint32_t depth = 1;
  std::uint32_t loop = kNone;         // whose operations, or entries, the lines are
  std::vector<std::uint32_t> placed;  // loops whose addresses are told; several where lines mix
};

/// Makes loops of lines.
class LoopSections {
 public:
  void take(OpenSection& section, std::string_view line, std::uint64_t offset, std::uint64_t size,
            const Location& where, Diagnostics& problems);

  /// The one that an event or a count names.
  std::uint32_t find_or_add(std::string_view name);

  std::vector<CompiledLoop> all;
  std::vector<CodeBytes> code;
  LoopNames names;

 private:
  struct GuardOf {
    std::uint32_t loop = CompiledLoop::kNone;
    std::uint32_t guard = 0;
  };

  void take_address(OpenSection& section, std::string_view line, const Location& where,
                    Diagnostics& problems);
  void place(OpenSection& section, const PlacedLine& line, const Location& where,
             Diagnostics& problems);
  void take_part(OpenSection& section, std::string_view part, Address address,
                 const Location& where, Diagnostics& problems);
  void take_operation(OpenSection& section, std::string_view line);
  void begin_operations(OpenSection& section, std::string_view name, std::string_view type);
  void add_guard(std::uint32_t index, Address address, std::string_view operation);
  void adopt(std::uint32_t bridge);
  void settle_jump(std::uint32_t index);
  bool is_meant_instead(std::uint32_t entered, std::uint32_t labelled) const;
  void take_count(OpenSection& section, std::string_view line);

  std::unordered_map<Address, GuardOf> guards_;
  struct LabelOf {
    std::uint32_t loop = 0;
    std::uint32_t label = 0;
  };
  std::unordered_map<std::uint64_t, LabelOf> labels_;
};

}  // namespace perfmap::loops
