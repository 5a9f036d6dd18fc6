// SPDX-License-Identifier: MIT
#include "elf/symbol_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <elf.h>
#include <numeric>
#include <tuple>

#include "elf/elf_layout.hpp"
#include "elf/plt.hpp"

namespace perfmap {

namespace {

/// Sorts by address; at the same address, the best symbol comes last.
bool is_before(const FoundSymbol& a, const FoundSymbol& b) noexcept {
  const auto merit = [](const FoundSymbol& s) {
    return std::tuple(s.size == 0, s.binding, s.kind, s.underscores, s.order);
  };
  return a.begin != b.begin ? a.begin < b.begin : merit(a) > merit(b);
}

/// LSD radix sort by the upper half of each number; stable.
void sort_by_upper_half(std::vector<std::uint64_t>& numbers) {
  constexpr unsigned kBits = 11;
  std::vector<std::uint64_t> sorted(numbers.size());
  for (unsigned shift = 32; shift < 64; shift += kBits) {
    const auto digit = [&](std::uint64_t n) { return n >> shift & ((1U << kBits) - 1); };
    std::array<std::size_t, (std::size_t{1} << kBits) + 1> begins{};
    for (const std::uint64_t number : numbers) ++begins[digit(number) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const std::uint64_t number : numbers) sorted[begins[digit(number)]++] = number;
    numbers.swap(sorted);
  }
}

/// Sorts like is_before(). Large tables are radix-sorted by address, which takes a third of the
/// time of comparing.
void sort_symbols(std::vector<FoundSymbol>& found) {
  constexpr std::size_t kLarge = 4096;
  const auto [first, last] = std::minmax_element(
      found.begin(), found.end(),
      [](const FoundSymbol& a, const FoundSymbol& b) { return a.begin < b.begin; });
  const Address base = first->begin;
  if (found.size() < kLarge || last->begin - base > UINT32_MAX) {
    std::sort(found.begin(), found.end(), is_before);
    return;
  }
  std::vector<std::uint64_t> order;
  order.reserve(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) order.push_back((found[i].begin - base) << 32 | i);
  sort_by_upper_half(order);
  std::vector<FoundSymbol> sorted;
  sorted.reserve(found.size());
  for (const std::uint64_t number : order) sorted.push_back(found[number & UINT32_MAX]);
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    auto end = begin + 1;
    while (end != sorted.end() && end->begin == begin->begin) ++end;
    if (end - begin > 1) std::sort(begin, end, is_before);
    begin = end;
  }
  found = std::move(sorted);
}

}  // namespace

CodeAreas::CodeAreas(std::vector<AddressRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
  for (const AddressRange& range : ranges) {
    if (range.size == 0) continue;
    if (!ranges_.empty() && range.begin < ranges_.back().end()) {
      AddressRange& last = ranges_.back();
      last.size = std::max(last.end(), range.end()) - last.begin;
    } else {
      ranges_.push_back(range);
    }
  }
}

std::uint64_t CodeAreas::room_at(Address address) const noexcept {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), address,
      [](Address wanted, const AddressRange& range) { return wanted < range.begin; });
  if (after == ranges_.begin()) return 0;
  const AddressRange& range = *(after - 1);
  return range.contains(address) ? range.end() - address : 0;
}

/// Sweeps over symbols by begin. Open symbols are on a stack, and its top owns the address: it
/// began last, or was the best of those that began with it.
class SymbolTable::Cutter {
 public:
  Cutter(SymbolTable& table, const std::vector<FoundSymbol>& found)
      : table_(&table), found_(&found), seen_(found.size()) {}

  void open(std::uint32_t symbol) {
    advance((*found_)[symbol].begin);
    open_.push_back(symbol);
  }
  void finish() { advance(UINT64_MAX); }
  /// Whether a symbol covers the address, if no later symbol has begun there.
  bool is_covered(Address address) {
    advance(address);
    drop_ended();
    return !open_.empty();
  }

 private:
  Address end_of(std::uint32_t symbol) const noexcept {
    return (*found_)[symbol].begin + (*found_)[symbol].size;
  }
  void drop_ended() {
    while (!open_.empty() && end_of(open_.back()) <= at_) open_.pop_back();
  }
  void advance(Address to) {
    for (drop_ended(); !open_.empty() && at_ < to; drop_ended()) {
      emit(open_.back());
      at_ = std::min(end_of(open_.back()), to);
    }
    at_ = std::max(at_, to);
  }
  void emit(std::uint32_t symbol) {
    const FoundSymbol& s = (*found_)[symbol];
    if (symbol == last_) return;
    last_ = symbol;
    table_->owners_ += seen_[symbol] ? 0 : 1;
    seen_[symbol] = true;
    const auto before = static_cast<std::uint32_t>(at_ - s.begin);
    auto kind = static_cast<std::uint8_t>(s.kind);
    if (before != 0) {
      kind = kind | kResumed;
      table_->resumed_.push_back({static_cast<std::uint32_t>(table_->pieces_.size()), before});
    }
    table_->pieces_.push_back({static_cast<std::uint32_t>(at_ - table_->base_),
                               static_cast<std::uint32_t>(s.size) - before, s.name, kUnknown,
                               s.strings, kind});
  }

  SymbolTable* table_;
  const std::vector<FoundSymbol>* found_;
  std::vector<bool> seen_;  // symbols that own something
  std::uint32_t last_ = UINT32_MAX;
  std::vector<std::uint32_t> open_;
  Address at_ = 0;
};

SymbolTable::SymbolTable(std::vector<FoundSymbol> found, std::vector<std::string_view> strings,
                         const CodeAreas& areas)
    : strings_(std::move(strings)) {
  std::erase_if(found, [&](const FoundSymbol& s) {
    return areas.room_at(s.begin) == 0 || s.name >= strings_[s.strings].size();
  });
  if (found.empty()) return;
  sort_symbols(found);
  base_ = found.front().begin;
  while (found.back().begin - base_ >= kMaxSpan) found.pop_back();
  const auto room_at = [&](Address address) {
    return std::min(areas.room_at(address), kMaxSpan - (address - base_));
  };
  for (FoundSymbol& s : found) s.size = std::min(s.size, room_at(s.begin));
  Cutter cutter(*this, found);
  for (std::size_t i = 0; i < found.size();) {
    std::size_t next = i;
    while (next < found.size() && found[next].begin == found[i].begin) ++next;
    // Symbols without size come first. If others begin here, or the address is covered, they are
    // labels inside named code.
    const bool sized = found[next - 1].size != 0;
    if (!sized) {
      FoundSymbol& best = found[next - 1];
      best.size = room_at(best.begin);
      if (next < found.size()) best.size = std::min(best.size, found[next].begin - best.begin);
      if (!cutter.is_covered(best.begin)) cutter.open(static_cast<std::uint32_t>(next - 1));
    }
    for (std::size_t k = i; sized && k < next; ++k) {
      if (found[k].size != 0) cutter.open(static_cast<std::uint32_t>(k));
    }
    i = next;
  }
  cutter.finish();
  measure_names();
  make_buckets();
}

/// Names may overlap, so the sum of their sizes may exceed that of their table. Names beyond that
/// are measured on each look-up.
void SymbolTable::measure_names() {
  constexpr std::uint64_t kUsual = 256;
  std::uint64_t room = kUsual * pieces_.size() + (std::uint64_t{1} << 20);
  for (OwnedRange& piece : pieces_) {
    const std::size_t size = name_at(strings_[piece.strings], piece.name).size();
    if (size >= room) return;
    room -= size;
    if (size < kUnknown) piece.name_size = static_cast<std::uint16_t>(size);
  }
}

void SymbolTable::make_buckets() {
  // About twice as many buckets as pieces, so that a bucket rarely has more than one.
  const auto bits = static_cast<int>(std::bit_width(pieces_.back().at)) -
                    static_cast<int>(std::bit_width(2 * pieces_.size()));
  shift_ = static_cast<unsigned>(std::max(0, bits));
  buckets_.assign((pieces_.back().at >> shift_) + std::size_t{2}, 0);
  std::size_t part = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    for (const std::size_t own = pieces_[i].at >> shift_; part <= own; ++part) {
      buckets_[part] = static_cast<std::uint32_t>(i);
    }
  }
  buckets_.back() = static_cast<std::uint32_t>(pieces_.size());
  pieces_.push_back({UINT32_MAX, 0, 0, 0, 0, 0});
  pieces_.shrink_to_fit();
  resumed_.shrink_to_fit();
}

AddressRange SymbolTable::range_of(std::size_t number) const noexcept {
  const OwnedRange& piece = pieces_[number];
  const AddressRange range{base_ + piece.at, piece.size};
  if ((piece.kind & kResumed) == 0) return range;
  const auto found =
      std::lower_bound(resumed_.begin(), resumed_.end(), number,
                       [](const Resumed& r, std::size_t wanted) { return r.piece < wanted; });
  return {range.begin - found->before, range.size + found->before};
}

std::optional<Symbol> SymbolTable::find(Address address) const noexcept {
  const std::uint64_t distance = address - base_;
  if (pieces_.empty() || distance >= kMaxSpan) return std::nullopt;
  const auto wanted = static_cast<std::uint32_t>(distance);
  const std::size_t part = std::min<std::size_t>(wanted >> shift_, buckets_.size() - 2);
  std::size_t after = buckets_[part];  // the first piece that begins after the address
  std::size_t count = buckets_[part + 1] - after;
  while (count > 1) {
    const std::size_t half = count / 2;
    const bool before = pieces_[after + half].at <= wanted;
    after += before ? half + 1 : 0;
    count = before ? count - half - 1 : half;
  }
  // Branchless, because the branch would be unpredictable. At the end of a bucket it reads a piece
  // of the next.
  after += pieces_[after].at <= wanted ? 1 : 0;
  const OwnedRange& piece = pieces_[after - 1];
  if (wanted - piece.at >= piece.size) return std::nullopt;
  const std::string_view strings = strings_[piece.strings];
  const std::string_view name = piece.name_size != kUnknown
                                    ? strings.substr(piece.name, piece.name_size)
                                    : name_at(strings, piece.name);
  return Symbol{name, range_of(after - 1), static_cast<SymbolKind>(piece.kind & ~kResumed),
                static_cast<std::uint32_t>(after - 1)};
}

std::uint64_t SymbolTable::bytes() const noexcept {
  return pieces_.capacity() * sizeof(OwnedRange) + buckets_.capacity() * sizeof(std::uint32_t) +
         resumed_.capacity() * sizeof(Resumed);
}

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
  // A few symbols per block if they are spread evenly.
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

/// The last to begin; among equals, the best.
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

std::string_view SymbolBlocks::text_of(const Entry& entry, std::size_t max) const noexcept {
  return strings_[entry.strings].substr(entry.name, max);
}

/// The best of the block's symbols that fit and have a name.
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

/// The symbol with a size that owns the address.
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

/// The symbol without a size that owns an address, if no symbol with a size does.
const SymbolBlocks::Entry* SymbolBlocks::label(std::uint32_t at, std::uint64_t& steps) const {
  const Entry* const last = last_begun(at, steps);
  // Symbols with a size take precedence.
  if (last == nullptr || last->size != 0 || container(last->at, steps) != nullptr) return nullptr;
  return at - last->at < areas_.room_at(base_ + last->at) ? last : nullptr;
}

/// Where the first symbol after the address begins, or the end.
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

namespace {

/// More than the largest browser has; a sparse file could claim any number.
constexpr std::uint64_t kMaxSymbols = std::uint64_t{1} << 23;
constexpr std::size_t kMaxStrings = 200;

std::optional<SymbolKind> kind_of(const ElfSymbolFields& symbol) noexcept {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS || symbol.section == SHN_COMMON) {
    return std::nullopt;
  }
  switch (symbol.type()) {
    case STT_FUNC: return SymbolKind::function;
    case STT_GNU_IFUNC: return SymbolKind::indirect;
    case STT_NOTYPE: return SymbolKind::label;
    default: return std::nullopt;
  }
}

std::uint8_t rank_of(unsigned binding) noexcept {
  if (binding == STB_GLOBAL || binding == STB_GNU_UNIQUE) return 0;
  return binding == STB_WEAK ? 1 : 2;
}

/// Reads names, which are scattered in memory, so they are prefetched.
void read_names(std::vector<FoundSymbol>& found, const std::vector<std::string_view>& strings) {
  constexpr std::size_t kAhead = 16;
  const auto text = [&](const FoundSymbol& symbol) {
    const std::string_view all = strings[symbol.strings];
    return symbol.name < all.size() ? all.substr(symbol.name, kEnoughOfName) : std::string_view();
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i + kAhead < found.size()) __builtin_prefetch(text(found[i + kAhead]).data());
    FoundSymbol symbol = found[i];
    const std::string_view name = text(symbol);
    if (symbol.kind != SymbolKind::plt) {
      if (is_mark(name)) continue;
      symbol.underscores = underscores_of(name);
    }
    found[kept++] = symbol;
  }
  found.resize(kept);
}

}  // namespace

void SymbolSources::add_section(const Module& module, const ElfSectionFacts& section,
                                ParseBudget& room) {
  if (section.link >= module.sections().size() || strings_.size() >= kMaxStrings) return;
  const std::string_view strings = module.bytes_of(module.sections()[section.link]);
  const std::string_view symbols = room.take(module.bytes_of(section));
  const std::size_t each = ElfFields::symbol_size(module.is_64());
  const std::uint64_t count = symbols.size() / each;
  const auto source = static_cast<std::uint8_t>(strings_.size());
  strings_.push_back(strings);
  found_.reserve(std::min(found_.size() + count, kMaxSymbols));
  for (std::uint64_t i = 1; i < count && found_.size() < kMaxSymbols; ++i) {
    const ElfSymbolFields raw(
        ElfFields(symbols.substr(i * each, each), module.byte_order(), module.is_64()));
    const std::optional<SymbolKind> kind = kind_of(raw);
    if (!kind) continue;
    FoundSymbol found;
    found.begin = raw.value;
    // Thumb symbols have bit 0 set in their address; the code does not.
    if (module.machine() == EM_ARM && *kind != SymbolKind::label) found.begin &= ~Address{1};
    found.size = raw.size;
    found.name = raw.name;
    found.order = static_cast<std::uint32_t>(found_.size());
    found.strings = source;
    found.binding = rank_of(raw.binding());
    found.kind = *kind;
    found_.push_back(found);
  }
}

void SymbolSources::add_symbols_of(const Module& module) {
  if (module.type() == ET_REL) return;
  ParseBudget room(module.bytes().size());
  for (const auto type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    for (const ElfSectionFacts& section : module.sections()) {
      if (section.type == type) add_section(module, section, room);
    }
  }
}

void SymbolSources::add_plt_of(const Module& module) {
  const auto source = static_cast<std::uint8_t>(strings_.size());
  for (const PltEntry& entry : plt_entries(module)) {
    if (found_.size() >= kMaxSymbols || made_->size() > UINT32_MAX - entry.name.size()) break;
    FoundSymbol found;
    found.begin = entry.range.begin;
    found.size = entry.range.size;
    found.name = static_cast<std::uint32_t>(made_->size());
    found.order = static_cast<std::uint32_t>(found_.size());
    found.strings = source;
    found.binding = rank_of(STB_LOCAL);
    found.kind = SymbolKind::plt;
    found_.push_back(found);
    made_->append(entry.name).push_back('\0');
  }
  made_->shrink_to_fit();
  strings_.push_back(*made_);
}

std::optional<SymbolSources::MadeBlocks> SymbolSources::blocks(const CodeAreas& areas) && {
  auto blocks = SymbolBlocks::of(found_, std::move(strings_), areas);
  if (!blocks) return std::nullopt;
  return MadeBlocks{*std::move(blocks), std::move(made_)};
}

SymbolSources::Made SymbolSources::table(const CodeAreas& areas) && {
  read_names(found_, strings_);
  SymbolTable table(std::move(found_), std::move(strings_), areas);
  return {std::move(table), std::move(made_)};
}

}  // namespace perfmap
