#include "modules/elf_dynamic.hpp"

#include <algorithm>
#include <elf.h>
#include <optional>

#include "modules/elf_fields.hpp"

namespace perfmap {
namespace {

/// What of the dynamic section matters; 0: it was not there.
struct Dynamic {
  Address symbols = 0;
  Address strings = 0;
  std::uint64_t string_bytes = 0;
  Address hash = 0;
  Address gnu_hash = 0;
};

Dynamic read_dynamic(ElfFields in) {
  constexpr std::size_t kMostEntries = 4096;
  Dynamic found;
  for (std::size_t i = 0; i < kMostEntries && in.ok() && !in.rest().empty(); ++i) {
    const std::int64_t tag = in.signed_word();
    const std::uint64_t value = in.word();
    if (tag == DT_NULL) break;
    if (tag == DT_SYMTAB) found.symbols = value;
    if (tag == DT_STRTAB) found.strings = value;
    if (tag == DT_STRSZ) found.string_bytes = value;
    if (tag == DT_HASH) found.hash = value;
    if (tag == DT_GNU_HASH) found.gnu_hash = value;
  }
  return found;
}

std::optional<std::uint64_t> offset_of(const ElfLayout& layout, Address address) {
  for (const LoadSegment& segment : layout.segments) {
    const std::uint64_t within = address - segment.range.begin;
    if (within < segment.file_size && within <= UINT64_MAX - segment.offset) {
      return segment.offset + within;
    }
  }
  return std::nullopt;
}

std::string_view bytes_at(std::string_view file, const ElfLayout& layout, Address address) {
  const auto offset = address == 0 ? std::nullopt : offset_of(layout, address);
  return offset && *offset < file.size() ? file.substr(*offset) : std::string_view();
}

/// The table of the System V ABI has as many chains as there are symbols.
std::uint64_t count_by_hash(std::string_view table, std::endian order) {
  Cursor in(table, order);
  in.u32();  // buckets
  const std::uint32_t chains = in.u32();
  return in.ok() ? chains : 0;
}

/// GNU's has the symbols from a first one on, in chains whose last element is odd; the last chain
/// ends with the last symbol.
std::uint64_t count_by_gnu_hash(std::string_view table, const ElfLayout& layout) {
  Cursor in(table, layout.order);
  const std::uint64_t buckets = in.u32();
  const std::uint64_t first = in.u32();
  const std::uint64_t bloom = in.u32();
  in.u32();  // the filter's shift
  if (!in.ok() || bloom * layout.word() + buckets * 4 > in.rest().size()) return 0;
  in.skip(bloom * layout.word());
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < buckets; ++i) last = std::max<std::uint64_t>(last, in.u32());
  if (last < first || (last - first) * 4 >= in.rest().size()) return first;
  in.skip((last - first) * 4);
  while (in.rest().size() >= 4) {
    ++last;
    if ((in.u32() & 1) != 0) break;
  }
  return last;
}

}  // namespace

void add_dynamic_symbols(std::string_view file, std::string_view dynamic, ElfLayout& layout) {
  const Dynamic found = read_dynamic({dynamic, layout.order, layout.is_64});
  const std::string_view symbols = bytes_at(file, layout, found.symbols);
  const std::string_view strings = bytes_at(file, layout, found.strings);
  if (symbols.empty() || strings.empty()) return;
  const std::size_t each = ElfFields::symbol_size(layout.is_64);
  const std::uint64_t counted =
      found.hash != 0 ? count_by_hash(bytes_at(file, layout, found.hash), layout.order)
                      : count_by_gnu_hash(bytes_at(file, layout, found.gnu_hash), layout);
  const std::uint64_t count = std::min<std::uint64_t>(counted, symbols.size() / each);
  const auto link = static_cast<std::uint32_t>(layout.sections.size() + 1);
  ElfSectionFacts table{".dynsym", SHT_DYNSYM, SHF_ALLOC, found.symbols};
  table.offset = file.size() - symbols.size();
  table.size = count * each;
  table.link = link;
  table.entry_size = each;
  ElfSectionFacts names{".dynstr", SHT_STRTAB, SHF_ALLOC, found.strings};
  names.offset = file.size() - strings.size();
  names.size = std::min<std::uint64_t>(found.string_bytes, strings.size());
  layout.sections.push_back(table);
  layout.sections.push_back(names);
}

}  // namespace perfmap
