#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "perfmap/module.hpp"

namespace perfmap {

/// Where functions begin and end, as symbols tell, for the few places where code has to be looked
/// at: a module's table of names, which Module::find_symbol() makes, takes a hundred times as long.
class FunctionBounds {
 public:
  /// The function that covers the address. The module must live until clear().
  std::optional<AddressRange> find(const Module& module, Address vaddr);
  void clear() noexcept { windows_.clear(); }

 private:
  using Window = std::vector<AddressRange>;  // by their begins
  static constexpr unsigned kWindowBits = 20;
  static constexpr std::size_t kMostWindows = 256;

  static Window read(std::string_view symbols, Address begin);

  std::map<std::pair<const Module*, Address>, Window> windows_;
};

}  // namespace perfmap
