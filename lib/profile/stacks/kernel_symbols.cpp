// SPDX-License-Identifier: MIT
#include "stacks/kernel_symbols.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "perfmap/profile/stacks.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kKernel = "[kernel.kallsyms]";

std::string_view next_word(std::string_view& line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

/// A line of /proc/kallsyms.
struct Line {
  Address address = 0;
  std::string_view type, name, module;
};

/// Removes and returns the next line; nothing if it is not a kallsyms line.
std::optional<Line> next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  Line read;
  const std::string_view address = next_word(line);
  read.type = next_word(line);
  read.name = next_word(line);
  read.module = next_word(line);
  const char* const last = address.data() + address.size();
  if (std::from_chars(address.data(), last, read.address, 16).ptr != last) return std::nullopt;
  return read.name.empty() ? std::nullopt : std::optional(read);
}

/// Notes are padded to four bytes.
std::size_t padded(std::uint32_t size) noexcept {
  return (std::size_t{size} + 3) & ~std::size_t{3};
}

}  // namespace

std::string_view kernel_build_id(std::string_view notes) noexcept {
  constexpr std::uint32_t kBuildId = 3;  // NT_GNU_BUILD_ID
  while (notes.size() >= 12) {
    std::array<std::uint32_t, 3> header{};  // sizes of name and description, type
    std::memcpy(header.data(), notes.data(), sizeof header);
    notes.remove_prefix(sizeof header);
    if (padded(header[0]) > notes.size()) return {};
    const std::string_view name = notes.substr(0, header[0]);
    notes.remove_prefix(padded(header[0]));
    if (header[1] > notes.size()) return {};
    if (header[2] == kBuildId && name == std::string_view("GNU", 4))
      return notes.substr(0, header[1]);
    notes.remove_prefix(std::min(padded(header[1]), notes.size()));
  }
  return {};
}

std::optional<Address> kernel_symbol_address(std::string_view kallsyms, std::string_view symbol) {
  while (!kallsyms.empty()) {
    const std::optional<Line> line = next_line(kallsyms);
    if (!line || line->name != symbol || !line->module.empty()) continue;
    return line->address == 0 ? std::nullopt : std::optional(line->address);
  }
  return std::nullopt;
}

void KernelSymbols::take(std::string_view kallsyms) {
  bool has_address = false;
  while (!kallsyms.empty()) {
    const std::optional<Line> line = next_line(kallsyms);
    if (!line) continue;
    const bool is_code =
        line->type.size() == 1 && std::string_view("tTwW").find(line->type[0]) != line->type.npos;
    if (!is_code) continue;
    has_address = has_address || line->address != 0;
    symbols_.push_back({line->address, line->name, line->module.empty() ? kKernel : line->module});
  }
  is_hidden_ = !symbols_.empty() && !has_address;
  if (is_hidden_) symbols_.clear();
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
}

void KernelSymbols::take(const KsymbolRecord& record) {
  constexpr std::size_t kMax = 100000;
  std::erase_if(registered_, [&](const Registered& one) {
    return record.unregister ? one.range == record.range : one.range.begin == record.range.begin;
  });
  if (!record.unregister && registered_.size() < kMax) {
    registered_.push_back({record.range, std::string(record.name)});
  }
}

std::optional<KernelSymbols::Found> KernelSymbols::find(Address address) {
  if (const auto read = std::exchange(read_, {})) take(read());
  for (auto one = registered_.rbegin(); one != registered_.rend(); ++one) {
    if (one->range.contains(address)) return Found{one->name, "bpf_prog", one->range.begin};
  }
  const auto after = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](Address wanted, const Symbol& symbol) { return wanted < symbol.address; });
  if (after == symbols_.begin()) return std::nullopt;
  // If several symbols have one address, the first in the text wins.
  const Address begin = std::prev(after)->address;
  const auto first = std::lower_bound(
      symbols_.begin(), after, begin,
      [](const Symbol& symbol, Address wanted) { return symbol.address < wanted; });
  return Found{first->name, first->module, begin};
}

}  // namespace perfmap
