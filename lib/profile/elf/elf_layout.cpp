// SPDX-License-Identifier: MIT
#include "elf/elf_layout.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string_view>

namespace perfmap {

namespace {

/// The relevant entries of the dynamic section; 0: missing.
struct Dynamic {
  Address symbols = 0;
  Address strings = 0;
  std::uint64_t string_bytes = 0;
  Address hash = 0;
  Address gnu_hash = 0;
};

Dynamic read_dynamic(ElfFields in) {
  constexpr std::size_t kMaxEntries = 4096;
  Dynamic found;
  for (std::size_t i = 0; i < kMaxEntries && in.ok() && !in.rest().empty(); ++i) {
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

/// The hash table of the System V ABI has one chain entry per symbol.
std::uint64_t count_by_hash(std::string_view table, std::endian order) {
  Cursor in(table, order);
  in.u32();  // buckets
  const std::uint32_t chains = in.u32();
  return in.ok() ? chains : 0;
}

/// The GNU hash table starts at a first symbol. The last element of a chain is odd, and the last
/// chain ends with the last symbol.
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

/// For a file without section headers: derives the sections of its dynamic symbols and their names
/// from the load addresses in PT_DYNAMIC; at most as many symbols as the hash tables count.
/// `dynamic` is the content of that segment.
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

constexpr std::uint64_t kMaxSections = std::uint64_t{1} << 18;
constexpr std::uint64_t kMaxSegments = 1024;
constexpr std::uint64_t kMaxNotes = std::uint64_t{4} << 20;
constexpr std::size_t kMaxSectionName = 256;
constexpr std::size_t kMaxBuildId = 64;

/// The position of a table in the file, and its stated number of entries.
struct Table {
  std::uint64_t offset = 0;
  std::uint64_t entry_size = 0;
  std::uint64_t count = 0;

  /// Entries that are wholly in the file, at most `most` of them.
  std::uint64_t present(std::string_view file, std::uint64_t least, std::uint64_t max) const {
    if (entry_size < least || offset >= file.size()) return 0;
    return std::min({count, max, (file.size() - offset) / entry_size});
  }
  std::string_view entry(std::string_view file, std::uint64_t i) const {
    return file.substr(offset + i * entry_size, entry_size);
  }
};

struct Headers {
  Table segments;
  Table sections;
  std::uint64_t names = 0;  // index of the section with the names of sections
};

ElfSectionFacts section_of(ElfFields in, std::uint32_t& name) {
  ElfSectionFacts section;
  name = in.u32();
  section.type = in.u32();
  section.flags = in.word();
  section.address = in.word();
  section.offset = in.word();
  section.size = in.word();
  section.link = in.u32();
  section.info = in.u32();
  in.word();  // alignment
  section.entry_size = in.word();
  return section;
}

/// `type` is PT_LOAD, PT_NOTE, PT_DYNAMIC or PT_GNU_EH_FRAME for the segments that matter.
struct Segment {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  Address address = 0;
  std::uint64_t file_size = 0;
  std::uint64_t memory_size = 0;
  std::uint64_t alignment = 0;
};

Segment segment_of(ElfFields in) {
  Segment s;
  s.type = in.u32();
  if (in.is_64()) s.flags = in.u32();
  s.offset = in.word();
  s.address = in.word();
  in.word();  // the physical address
  s.file_size = in.word();
  s.memory_size = in.word();
  if (!in.is_64()) s.flags = in.u32();
  s.alignment = in.word();
  return s;
}

/// Numbers that do not fit 16 bits are in the first section's header (gABI 4.1, "e_shnum").
void take_large_numbers(Headers& headers, std::string_view file, const ElfLayout& layout) {
  Table first = headers.sections;
  first.count = 1;
  if (first.present(file, ElfFields::section_size(layout.is_64), 1) == 0) return;
  std::uint32_t name = 0;
  const ElfSectionFacts section =
      section_of({first.entry(file, 0), layout.order, layout.is_64}, name);
  if (headers.sections.count == 0) headers.sections.count = section.size;
  if (headers.names == SHN_XINDEX) headers.names = section.link;
  if (headers.segments.count == PN_XNUM) headers.segments.count = section.info;
}

Headers read_header(std::string_view file, ElfLayout& layout) {
  ElfFields in(file.substr(EI_NIDENT), layout.order, layout.is_64);
  layout.type = in.u16();
  layout.machine = in.u16();
  in.u32();  // version
  layout.entry = in.word();
  Headers headers;
  headers.segments.offset = in.word();
  headers.sections.offset = in.word();
  in.u32();  // flags
  in.u16();  // its own size
  headers.segments.entry_size = in.u16();
  headers.segments.count = in.u16();
  headers.sections.entry_size = in.u16();
  headers.sections.count = in.u16();
  headers.names = in.u16();
  if (headers.sections.offset != 0) take_large_numbers(headers, file, layout);
  return headers;
}

void read_sections(std::string_view file, const Headers& headers, ElfLayout& layout) {
  const Table& table = headers.sections;
  const std::uint64_t count =
      table.offset == 0 ? 0
                        : table.present(file, ElfFields::section_size(layout.is_64), kMaxSections);
  std::vector<std::uint32_t> names(count);
  layout.sections.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    layout.sections.push_back(
        section_of({table.entry(file, i), layout.order, layout.is_64}, names[i]));
  }
  if (headers.names >= count) return;
  const std::string_view text = layout.bytes_of(file, layout.sections[headers.names]);
  for (std::uint64_t i = 0; i < count; ++i) {
    layout.sections[i].name = name_at(text, names[i], kMaxSectionName);
  }
}

/// The content of the build id note, if the area has one.
std::string_view build_id_in(std::string_view area, const ElfLayout& layout,
                             std::uint64_t alignment) {
  Cursor in(area, layout.order);
  const std::uint64_t mask = alignment == 8 ? 7 : 3;
  const auto padded = [mask](std::uint64_t size) { return (size + mask) & ~mask; };
  while (in.rest().size() >= 12) {
    const std::uint64_t name_size = in.u32();
    const std::uint64_t size = in.u32();
    const std::uint32_t type = in.u32();
    // The note's header has 12 bytes, so with an alignment of 8 the name is padded after it.
    const std::string_view name = in.bytes(name_size);
    in.skip(std::min<std::uint64_t>(padded(12 + name_size) - 12 - name_size, in.rest().size()));
    const std::string_view content = in.bytes(size);
    in.skip(std::min<std::uint64_t>(padded(size) - size, in.rest().size()));
    if (!in.ok()) break;
    if (type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      return content.substr(0, kMaxBuildId);
    }
  }
  return {};
}

/// Replaces the sections if there are no section headers.
struct Unsectioned {
  std::string_view dynamic;  // the content of PT_DYNAMIC
  Segment frame_header;      // PT_GNU_EH_FRAME

  void add_to(std::string_view file, ElfLayout& layout) const {
    add_dynamic_symbols(file, dynamic, layout);
    if (frame_header.type != PT_GNU_EH_FRAME) return;
    ElfSectionFacts section{".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, frame_header.address};
    section.offset = frame_header.offset;
    section.size = frame_header.file_size;
    layout.sections.push_back(section);
  }
};

Unsectioned read_segments(std::string_view file, const Table& table, ParseBudget& room,
                          ElfLayout& layout) {
  Unsectioned found;
  const std::uint64_t count =
      table.present(file, ElfFields::segment_size(layout.is_64), kMaxSegments);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Segment s = segment_of({table.entry(file, i), layout.order, layout.is_64});
    if (s.type == PT_NOTE && layout.build_id.empty() && s.offset < file.size()) {
      const std::string_view area = room.take(file.substr(s.offset, s.file_size));
      layout.build_id = build_id_in(area, layout, s.alignment);
    }
    if (s.type == PT_DYNAMIC && s.offset < file.size()) {
      found.dynamic = file.substr(s.offset, s.file_size);
    }
    if (s.type == PT_GNU_EH_FRAME) found.frame_header = s;
    if (s.type != PT_LOAD) continue;
    LoadSegment loaded;
    loaded.range = AddressRange::clamped(s.address, s.memory_size);
    loaded.offset = s.offset;
    loaded.file_size = std::min(s.file_size, loaded.range.size);
    loaded.is_executable = (s.flags & PF_X) != 0;
    loaded.is_writable = (s.flags & PF_W) != 0;
    layout.segments.push_back(loaded);
  }
  return found;
}

}  // namespace

std::string_view name_at(std::string_view strings, std::uint64_t offset, std::size_t max) noexcept {
  if (offset >= strings.size()) return {};
  const std::string_view rest = strings.substr(offset, max);
  const void* const nul = std::memchr(rest.data(), '\0', rest.size());
  return nul == nullptr
             ? rest
             : rest.substr(0,
                           static_cast<std::size_t>(static_cast<const char*>(nul) - rest.data()));
}

std::string_view ElfLayout::bytes_of(std::string_view file,
                                     const ElfSectionFacts& section) const noexcept {
  if (section.type == SHT_NOBITS || section.type == SHT_NULL) return {};
  if (section.offset > file.size() || section.size > file.size() - section.offset) return {};
  return file.substr(section.offset, section.size);
}

Result<ElfLayout> read_elf_layout(std::string_view file, const std::string& name) {
  const auto bad = [&name](const char* why) {
    return Failure(Error::of(Reason::not_of_kind, name, "an ELF file: " + std::string(why)));
  };
  if (!file.starts_with(ELFMAG)) return bad("it does not begin with \\x7fELF");
  if (file.size() < EI_NIDENT) return bad("its header is truncated");
  ElfLayout layout;
  const char kind = file[EI_CLASS];
  const char order = file[EI_DATA];
  if (kind != ELFCLASS32 && kind != ELFCLASS64)
    return bad("it is neither a 32-bit nor a 64-bit file");
  if (order != ELFDATA2LSB && order != ELFDATA2MSB) return bad("its byte order is unknown");
  layout.is_64 = kind == ELFCLASS64;
  layout.order = order == ELFDATA2LSB ? std::endian::little : std::endian::big;
  if (file.size() < ElfFields::header_size(layout.is_64)) return bad("its header is truncated");
  const Headers headers = read_header(file, layout);
  ParseBudget room(kMaxNotes);
  const Unsectioned unsectioned = read_segments(file, headers.segments, room, layout);
  read_sections(file, headers, layout);
  if (layout.sections.empty()) unsectioned.add_to(file, layout);
  for (const ElfSectionFacts& section : layout.sections) {
    if (!layout.build_id.empty()) break;
    if (section.type != SHT_NOTE) continue;
    layout.build_id = build_id_in(room.take(layout.bytes_of(file, section)), layout, 4);
  }
  return layout;
}

}  // namespace perfmap
