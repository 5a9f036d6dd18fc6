#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "modules/cfi_table.hpp"
#include "perfmap/jit_details.hpp"
#include "unwind/code_bytes.hpp"

namespace perfmap {

/// Call frame information of the code in jitdumps. Made when it is first asked for; the dumps must
/// stay as they are.
class JitCfi {
 public:
  /// The rules at an address of that code; `machine` is an e_machine. O(records) for the first
  /// address of a dump.
  std::optional<CfiRow> find(const DumpedCode& code, std::uint16_t machine);

 private:
  static constexpr std::size_t kMostTables = 4096;
  using Key = std::pair<const Jitdump*, std::uint64_t>;

  std::unique_ptr<const CfiTable> make(const DumpedCode& code, std::uint16_t machine);

  std::map<const Jitdump*, JitDetails> details_;
  std::map<Key, std::unique_ptr<const CfiTable>> tables_;
};

}  // namespace perfmap
