// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/profile/recording.hpp"

namespace perfmap {

/// Functions of the kernel, from a text such as /proc/kallsyms, and from events of the recording
/// (BPF programs).
class KernelSymbols {
 public:
  struct Found {
    std::string_view name;
    std::string_view module;  ///< "[kernel.kallsyms]", "[nf_tables]"
    Address begin = 0;
  };

  /// `read` returns the text, which is borrowed. It is called by the first find(), O(n log n).
  /// Source: Linux, kernel/kallsyms.c.
  explicit KernelSymbols(std::function<std::string_view()> read) : read_(std::move(read)) {}
  /// True if the addresses were hidden from the user who made the text (kptr_restrict).
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

  std::function<std::string_view()> read_;  // empty after the call
  std::vector<Symbol> symbols_;
  std::vector<Registered> registered_;  // latest last
  bool is_hidden_ = false;
};

}  // namespace perfmap
