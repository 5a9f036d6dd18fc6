#include "modules/symbol_blocks.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "modules/elf_layout.hpp"

namespace perfmap {

std::optional<SymbolBlocks> SymbolBlocks::of(const std::vector<FoundSymbol>& found,
                                             std::vector<std::string_view> strings,
                                             const CodeAreas& areas) {
  const AddressRange whole = areas.whole();
  if (found.empty() || whole.size == 0 || whole.size >= UINT32_MAX) return std::nullopt;
  SymbolBlocks made;
  made.base_ = whole.begin;
  made.areas_ = areas;
  made.strings_ = std::move(strings);
  made.entries_.reserve(found.size());
  for (const FoundSymbol& symbol : found) {
    const std::uint64_t room = areas.room_at(symbol.begin);
    if (room != 0 && symbol.name < made.strings_[symbol.strings].size()) made.add(symbol, room);
  }
  // A few of them in each block, where they are spread evenly.
  const auto bits = static_cast<int>(std::bit_width(whole.size)) -
                    static_cast<int>(std::bit_width(made.entries_.size() / 4));
  made.shift_ = static_cast<unsigned>(std::clamp(bits, 0, 31));
  made.heads_.assign((whole.size >> made.shift_) + 1, kNone);
  made.link();
  return made;
}

void SymbolBlocks::add(const FoundSymbol& symbol, std::uint64_t room) {
  entries_.push_back({static_cast<std::uint32_t>(symbol.begin - base_),
                      static_cast<std::uint32_t>(std::min(symbol.size, room)), symbol.name, kNone,
                      symbol.strings, symbol.binding, symbol.kind});
}

void SymbolBlocks::link() {
  reach_.assign(heads_.size() + 1, 0);
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const std::size_t block = entry.at >> shift_;
    entry.next = heads_[block];
    heads_[block] = i;
    reach_[block + 1] = std::max(reach_[block + 1], entry.at + entry.size);
  }
  for (std::size_t i = 1; i < reach_.size(); ++i) reach_[i] = std::max(reach_[i], reach_[i - 1]);
}

/// The last to begin, and the best of those that begin together.
bool SymbolBlocks::is_better(const Entry& one, const Entry& other) const noexcept {
  if (one.at != other.at) return one.at > other.at;
  const auto merit = [](const Entry& e) { return std::tuple(e.size == 0, e.binding, e.kind); };
  if (merit(one) != merit(other)) return merit(one) < merit(other);
  const auto underscores = [this](const Entry& e) {
    return underscores_of(text_of(e, kEnoughOfName));
  };
  const auto own = underscores(one);
  const auto others = underscores(other);
  return own != others ? own < others : &one < &other;
}

bool SymbolBlocks::is_named(const Entry& entry) const noexcept {
  return entry.kind == SymbolKind::plt || !is_mark(text_of(entry, kEnoughOfName));
}

std::string_view SymbolBlocks::text_of(const Entry& entry, std::size_t most) const noexcept {
  return strings_[entry.strings].substr(entry.name, most);
}

/// Of the block's symbols that fit and have a name.
template <class Fits>
const SymbolBlocks::Entry* SymbolBlocks::best_of(std::size_t block, const Fits& fits,
                                                 std::uint64_t& steps) const {
  const Entry* best = nullptr;
  ++steps;
  for (std::uint32_t i = heads_[block]; i != kNone; i = entries_[i].next) {
    const Entry& entry = entries_[i];
    ++steps;
    if (!fits(entry) || (best != nullptr && !is_better(entry, *best))) continue;
    if (is_named(entry)) best = &entry;
  }
  return best;
}

/// The one with a size that owns the address.
const SymbolBlocks::Entry* SymbolBlocks::container(std::uint32_t at, std::uint64_t& steps) const {
  const auto contains = [at](const Entry& e) { return e.at <= at && at - e.at < e.size; };
  for (std::size_t block = at >> shift_;; --block) {
    const Entry* const best = best_of(block, contains, steps);
    if (best != nullptr || reach_[block] <= at) return best;  // nothing reaches block 0
  }
}

const SymbolBlocks::Entry* SymbolBlocks::last_begun(std::uint32_t at, std::uint64_t& steps) const {
  const auto is_before = [at](const Entry& e) { return e.at <= at; };
  for (std::size_t block = at >> shift_;; --block) {
    const Entry* const best = best_of(block, is_before, steps);
    if (best != nullptr || block == 0) return best;
  }
}

/// The one without a size that owns an address which none with a size does.
const SymbolBlocks::Entry* SymbolBlocks::label(std::uint32_t at, std::uint64_t& steps) const {
  const Entry* const last = last_begun(at, steps);
  // Those with a size are better.
  if (last == nullptr || last->size != 0 || container(last->at, steps) != nullptr) return nullptr;
  return at - last->at < areas_.room_at(base_ + last->at) ? last : nullptr;
}

/// Where the first symbol behind the address begins, or the end.
std::uint32_t SymbolBlocks::next_begin(std::uint32_t at, std::uint64_t& steps) const {
  for (std::size_t block = at >> shift_; block < heads_.size(); ++block) {
    std::uint32_t first = kNone;
    ++steps;
    for (std::uint32_t i = heads_[block]; i != kNone; i = entries_[i].next) {
      const Entry& entry = entries_[i];
      ++steps;
      if (entry.at > at && entry.at < first && is_named(entry)) first = entry.at;
    }
    if (first != kNone) return first;
  }
  return kNone;
}

std::optional<Symbol> SymbolBlocks::find(Address address, std::uint64_t& steps) const {
  const std::uint64_t distance = address - base_;
  if (distance >= areas_.whole().size) return std::nullopt;
  const auto at = static_cast<std::uint32_t>(distance);
  const Entry* found = container(at, steps);
  if (found == nullptr) found = label(at, steps);
  if (found == nullptr) return std::nullopt;
  std::uint64_t size = found->size;
  if (size == 0) {
    size = std::min<std::uint64_t>(areas_.room_at(base_ + found->at),
                                   next_begin(at, steps) - found->at);
  }
  return Symbol{name_at(strings_[found->strings], found->name),
                {base_ + found->at, size},
                found->kind,
                static_cast<std::uint32_t>(found - entries_.data())};
}

std::uint64_t SymbolBlocks::bytes() const noexcept {
  return entries_.capacity() * sizeof(Entry) +
         (heads_.capacity() + reach_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace perfmap
