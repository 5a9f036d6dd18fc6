#include "stacks/kernel_symbols.hpp"

#include <algorithm>
#include <charconv>

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

}  // namespace

KernelSymbols::KernelSymbols(std::string_view kallsyms) {
  bool has_address = false;
  while (!kallsyms.empty()) {
    const std::size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    std::string_view line = kallsyms.substr(0, end);
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
    const std::string_view address = next_word(line);
    const std::string_view type = next_word(line);
    const std::string_view name = next_word(line);
    const std::string_view module = next_word(line);
    Symbol symbol{0, name, module.empty() ? kKernel : module};
    const char* const last = address.data() + address.size();
    if (std::from_chars(address.data(), last, symbol.address, 16).ptr != last) continue;
    const bool is_code = type.size() == 1 && std::string_view("tTwW").find(type[0]) != type.npos;
    if (name.empty() || !is_code) continue;
    has_address = has_address || symbol.address != 0;
    symbols_.push_back(symbol);
  }
  is_hidden_ = !symbols_.empty() && !has_address;
  if (is_hidden_) symbols_.clear();
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
}

void KernelSymbols::take(const KsymbolRecord& record) {
  constexpr std::size_t kMost = 100000;
  std::erase_if(registered_, [&](const Registered& one) {
    return record.unregister ? one.range == record.range : one.range.begin == record.range.begin;
  });
  if (!record.unregister && registered_.size() < kMost) {
    registered_.push_back({record.range, std::string(record.name)});
  }
}

std::optional<KernelSymbols::Found> KernelSymbols::find(Address address) const noexcept {
  for (auto one = registered_.rbegin(); one != registered_.rend(); ++one) {
    if (one->range.contains(address)) return Found{one->name, "bpf_prog", one->range.begin};
  }
  const auto after = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](Address wanted, const Symbol& symbol) { return wanted < symbol.address; });
  if (after == symbols_.begin()) return std::nullopt;
  // Of several at one address the first counts, as the text has them.
  const Address begin = std::prev(after)->address;
  const auto first = std::lower_bound(
      symbols_.begin(), after, begin,
      [](const Symbol& symbol, Address wanted) { return symbol.address < wanted; });
  return Found{first->name, first->module, begin};
}

}  // namespace perfmap
