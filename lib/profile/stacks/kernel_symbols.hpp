#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/profile/recording.hpp"

namespace perfmap {

/// Functions of the kernel: of a text such as /proc/kallsyms, and those that a recording tells (of
/// BPF programs).
class KernelSymbols {
 public:
  struct Found {
    std::string_view name;
    std::string_view module;  ///< "[kernel.kallsyms]", "[nf_tables]"
    Address begin = 0;
  };

  /// `read` gives the text, which is borrowed: called by the first find(), O(n log n).
  /// Source: Linux, kernel/kallsyms.c.
  explicit KernelSymbols(std::function<std::string_view()> read) : read_(std::move(read)) {}
  /// True where addresses are hidden from whoever made the text (kptr_restrict).
  bool is_hidden() const noexcept { return is_hidden_; }
  void take(const KsymbolRecord& record);

  /// O(log n).
  std::optional<Found> find(Address address);

 private:
  struct Symbol {
    Address address = 0;
    std::string_view name;
    std::string_view module;
  };
  struct Registered {
    AddressRange range;
    std::string name;
  };
  void take(std::string_view kallsyms);

  std::function<std::string_view()> read_;  // empty once it was called
  std::vector<Symbol> symbols_;
  std::vector<Registered> registered_;  // the latest last
  bool is_hidden_ = false;
};

}  // namespace perfmap
