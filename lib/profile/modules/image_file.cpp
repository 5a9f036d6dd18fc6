#include "modules/image_file.hpp"

#include <dwarf.h>

#include "modules/elf_file.hpp"
#include "modules/elf_structures.hpp"
#include "modules/image_dwarf.hpp"
#include "modules/image_frames.hpp"
#include "modules/image_lines.hpp"

namespace perfmap {
namespace {

/// Everything that the sections are written from.
struct Image {
  const Timeline& timeline;
  Target target;
  ImageCode code;
  ImageLines lines;
  ImageFrames frames;

  Image(const Timeline& of, const Target& for_target, ImageCode&& of_code)
      : timeline(of),
        target(for_target),
        code(std::move(of_code)),
        lines(target, code),
        frames(target) {}
  Image(const Image&) = delete;  // lines and frames refer to the target
  Image& operator=(const Image&) = delete;
};

void describe_functions(Image& image, const JitDetails& details, ElfImageCounts& counts) {
  const Jitdump& dump = image.timeline.dump();
  for (const ImageFunction& function : image.code.functions) {
    if (function.is_stray) continue;
    const std::vector<CodeLine> lines = details.lines(function.load);
    if (!lines.empty()) {
      image.lines.add(image.code, function, lines);
      ++counts.with_lines;
    }
    const auto offset = details.unwinding(function.load);
    const auto record = offset ? dump.record_at(*offset) : std::nullopt;
    const auto unwinding = record ? decode_unwinding(*record) : std::nullopt;
    if (unwinding) image.frames.add(image.code, function, unwinding->eh_frame, counts);
  }
  image.frames.finish();
}

/// The bytes of a piece; none where the dump does not have them, or no longer.
std::string_view bytes_of(const Jitdump& dump, const ImageFunction& function,
                          const AddressRange& piece) {
  const auto record = function.has_code ? dump.record_at(function.load) : std::nullopt;
  const auto load = record ? decode_load(*record) : std::nullopt;
  if (!load || load->code.size() < function.range.size) return {};
  return load->code.substr(piece.begin - function.range.begin, piece.size);
}

void write_cluster(const Image& image, const ImageCluster& cluster, ElfSink& sink) {
  Address at = cluster.range.begin;
  for (std::uint32_t i = cluster.first; i < cluster.first + cluster.count; ++i) {
    const ImagePiece& piece = image.code.pieces[i];
    sink.zeros(piece.range.begin - at);
    const std::string_view bytes =
        bytes_of(image.timeline.dump(), image.code.functions[piece.function], piece.range);
    sink.write(bytes);
    sink.zeros(piece.range.size - bytes.size());
    at = piece.range.end();
  }
}

/// Answers with the number of each cluster's section.
std::vector<std::uint16_t> add_code(ElfFile& file, const Image& image) {
  std::vector<std::uint16_t> numbers;
  std::uint32_t named = 0;
  for (const ImageCluster& cluster : image.code.clusters) {
    if (!cluster.has_section) {
      numbers.push_back(SHN_ABS);
      continue;
    }
    ElfSection section;
    section.name = named == 0 ? ".text" : ".text." + std::to_string(named);
    ++named;
    section.type = cluster.has_code ? SHT_PROGBITS : SHT_NOBITS;
    section.flags = SHF_ALLOC | SHF_EXECINSTR;
    section.address = cluster.range.begin;
    section.size = cluster.range.size;
    section.alignment = cluster.alignment;
    section.offset = cluster.offset;
    section.write = [&image, &cluster](ElfSink& sink) { write_cluster(image, cluster, sink); };
    numbers.push_back(static_cast<std::uint16_t>(file.add(std::move(section))));
  }
  return numbers;
}

void write_symbols(const Image& image, const std::vector<std::uint16_t>& sections, ElfSink& sink) {
  std::string bytes;
  append_symbol(bytes, image.target, {});
  for (const ImagePiece& piece : image.code.pieces) {
    Elf64_Sym symbol{};
    symbol.st_name = image.code.functions[piece.function].name;
    symbol.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
    symbol.st_shndx = sections[piece.cluster];
    symbol.st_value = piece.range.begin;
    symbol.st_size = piece.range.size;
    append_symbol(bytes, image.target, symbol);
    if (bytes.size() < OutputFile::kRoom) continue;
    sink.write(bytes);
    bytes.clear();
  }
  sink.write(bytes);
}

void add_symbols(ElfFile& file, const Image& image, std::vector<std::uint16_t> sections) {
  const std::uint64_t count = image.code.pieces.size() + 1;
  ElfSection symbols;
  symbols.name = ".symtab";
  symbols.type = SHT_SYMTAB;
  symbols.entry_size = ElfSizes(image.target).symbol;
  symbols.size = count * symbols.entry_size;
  symbols.alignment = image.target.address_size();
  symbols.link = file.next() + 1;
  symbols.info = static_cast<std::uint32_t>(count);  // names may repeat, so all are local
  symbols.write = [&image, numbers = std::move(sections)](ElfSink& sink) {
    write_symbols(image, numbers, sink);
  };
  file.add(std::move(symbols));
}

void add_bytes(ElfFile& file, const char* name, std::uint32_t type, std::string_view bytes,
               std::uint64_t alignment = 1, std::uint64_t flags = 0) {
  if (bytes.empty()) return;
  ElfSection section;
  section.flags = flags;
  section.entry_size = (flags & SHF_STRINGS) != 0 ? 1 : 0;
  section.name = name;
  section.type = type;
  section.size = bytes.size();
  section.alignment = alignment;
  section.write = [bytes](ElfSink& sink) { sink.write(bytes); };
  file.add(std::move(section));
}

void add_lines(ElfFile& file, const Image& image) {
  if (image.lines.size() == 0) return;
  ElfSection section;
  section.name = ".debug_line";
  section.type = SHT_PROGBITS;
  section.size = image.lines.size();
  section.write = [&image](ElfSink& sink) {
    for (const LineTable& table : image.lines.tables()) {
      sink.write(table.head());
      sink.write(table.program());
    }
  };
  file.add(std::move(section));
}

/// Offsets in these sections have 32 bits, and the highest few mean other things.
bool is_too_large(const Image& image, const ImageDwarf& dwarf) noexcept {
  constexpr std::uint64_t kMost = 0xfffffff0;
  return image.lines.size() > kMost || image.frames.bytes().size() > kMost ||
         dwarf.info.size() > kMost || dwarf.ranges.size() > kMost;
}

/// .eh_frame_hdr with an empty table. perf's libunwind goes on by frame pointers where a table has
/// nothing for an address, and gives up where there is no table.
TargetBytes empty_frame_table(const Target& target) {
  TargetBytes bytes(target);
  bytes.u8(1).u8(DW_EH_PE_pcrel | DW_EH_PE_sdata4).u8(DW_EH_PE_udata4);
  bytes.u8(DW_EH_PE_datarel | DW_EH_PE_sdata4);
  bytes.u32(0).u32(0).u32(0).u32(0);  // .eh_frame; how many; and an entry for who counts from 1
  return bytes;
}

Result<void> write_sections(const Image& image, const ImageDwarf& dwarf, std::uint16_t type,
                            OutputFile& out) {
  ElfFile file(image.target, type);
  add_symbols(file, image, add_code(file, image));
  add_bytes(file, ".strtab", SHT_STRTAB, image.code.names);
  add_bytes(file, ".eh_frame", SHT_PROGBITS, image.frames.bytes(), image.target.address_size());
  const TargetBytes table = empty_frame_table(image.target);
  if (type == ET_DYN) add_bytes(file, ".eh_frame_hdr", SHT_PROGBITS, table.view(), 4);
  add_bytes(file, ".debug_abbrev", SHT_PROGBITS, dwarf.abbreviations.view());
  add_bytes(file, ".debug_info", SHT_PROGBITS, dwarf.info.view());
  add_lines(file, image);
  add_bytes(file, ".debug_str", SHT_PROGBITS, image.code.names, 1, SHF_MERGE | SHF_STRINGS);
  add_bytes(file, ".debug_ranges", SHT_PROGBITS, dwarf.ranges.view());
  add_bytes(file, ".debug_aranges", SHT_PROGBITS, dwarf.aranges.view());
  return file.write(out);
}

}  // namespace

Result<void> write_image_file(const Timeline& timeline, const JitDetails& details,
                              const Target& target, ImageCode&& code, std::uint16_t type,
                              ElfImageCounts& counts, OutputFile& out) {
  Image image(timeline, target, std::move(code));
  describe_functions(image, details, counts);
  image.lines.finish();
  const ImageDwarf dwarf(image.target, image.code, image.lines);
  if (is_too_large(image, dwarf)) {
    return Failure({Errc::too_large, "more lines or frames than an ELF file can hold", 0, {}});
  }
  return write_sections(image, dwarf, type, out);
}

}  // namespace perfmap
