#include "modules/elf_file.hpp"

#include <algorithm>
#include <cassert>

#include "modules/elf_structures.hpp"
#include "modules/target_bytes.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kNoteName("GNU\0", 4);
constexpr std::uint64_t kNoteSize = 12 + kNoteName.size() + Sha1::kSize;

constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

void ElfSink::write(std::string_view bytes) {
  hash_.update(bytes);
  out_->write(bytes);
  position_ += bytes.size();
}

void ElfSink::zeros(std::uint64_t count) {
  static constexpr char kZeros[4096] = {};
  for (; count > sizeof kZeros; count -= sizeof kZeros) write({kZeros, sizeof kZeros});
  write({kZeros, static_cast<std::size_t>(count)});
}

std::uint32_t ElfFile::add(ElfSection section) {
  names_.push_back(static_cast<std::uint32_t>(text_of_names_.size()));
  text_of_names_.append(section.name).push_back('\0');
  sections_.push_back(std::move(section));
  return static_cast<std::uint32_t>(sections_.size());
}

void ElfFile::add_names() {
  ElfSection names;
  names.name = ".shstrtab";
  names.type = SHT_STRTAB;
  names.write = [this](ElfSink& sink) { sink.write(text_of_names_); };
  add(std::move(names));
  ElfSection note;
  note.name = ".note.gnu.build-id";
  note.type = SHT_NOTE;
  note.size = kNoteSize;
  note.alignment = 4;
  note.write = [this](ElfSink& sink) {
    const auto id = sink.digest();
    sink.write(build_id_note({id.data(), id.size()}));
  };
  add(std::move(note));
  sections_[sections_.size() - 2].size = text_of_names_.size();
}

bool ElfFile::has_segment(const ElfSection& section) const noexcept {
  return (section.flags & SHF_ALLOC) != 0 && section.address >= mapped_begin_;
}

std::uint16_t ElfFile::segment_count() const noexcept {
  const auto loaded = std::count_if(sections_.begin(), sections_.end(),
                                    [this](const ElfSection& s) { return has_segment(s); });
  return static_cast<std::uint16_t>(loaded + (mapped_begin_ != 0 ? 2 : 1));
}

void ElfFile::lay_out() {
  const ElfSizes sizes(target_);
  std::uint64_t at = sizes.header + std::uint64_t{sizes.segment} * segment_count();
  for (const ElfSection& section : sections_) {
    at = std::max(rounded_up(at, section.alignment), section.offset);
    offsets_.push_back(at);
    if (section.type != SHT_NOBITS) at += section.size;
  }
  end_ = at;
}

std::uint64_t ElfFile::offset_of_sections() const noexcept { return rounded_up(end_, 8); }

std::string ElfFile::header() const {
  const ElfSizes sizes(target_);
  Elf64_Ehdr h{};
  std::copy_n(ELFMAG, SELFMAG, h.e_ident);
  h.e_ident[EI_CLASS] = target_.is_64 ? ELFCLASS64 : ELFCLASS32;
  h.e_ident[EI_DATA] = target_.order == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_type = type_;
  h.e_machine = target_.machine;
  h.e_version = EV_CURRENT;
  h.e_flags = target_.flags;
  h.e_phoff = sizes.header;
  h.e_shoff = offset_of_sections();
  h.e_ehsize = sizes.header;
  h.e_phentsize = sizes.segment;
  h.e_phnum = segment_count();
  h.e_shentsize = sizes.section;
  h.e_shnum = static_cast<std::uint16_t>(sections_.size() + 1);
  h.e_shstrndx = static_cast<std::uint16_t>(sections_.size() - 1);
  std::string out;
  append_header(out, target_, h);
  return out;
}

std::string ElfFile::segments() const {
  std::string out;
  if (mapped_begin_ != 0) {
    Elf64_Phdr p{};
    p.p_type = PT_LOAD;
    p.p_flags = PF_R;
    p.p_filesz = p.p_memsz = mapped_begin_;
    p.p_align = 1;
    append_segment(out, target_, p);
  }
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    const ElfSection& section = sections_[i];
    const bool is_loaded = has_segment(section);
    if (!is_loaded && section.type != SHT_NOTE) continue;
    Elf64_Phdr p{};
    p.p_type = is_loaded ? PT_LOAD : PT_NOTE;
    p.p_flags = PF_R | ((section.flags & SHF_EXECINSTR) != 0 ? PF_X : 0u);
    p.p_offset = offsets_[i];
    p.p_vaddr = p.p_paddr = section.address;
    p.p_filesz = section.type == SHT_NOBITS ? 0 : section.size;
    p.p_memsz = section.size;
    p.p_align = section.alignment;
    append_segment(out, target_, p);
  }
  return out;
}

std::string ElfFile::section_headers() const {
  std::string out;
  append_section(out, target_, Elf64_Shdr{});
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    const ElfSection& s = sections_[i];
    append_section(out, target_,
                   {names_[i], s.type, s.flags, s.address, offsets_[i], s.size, s.link, s.info,
                    s.alignment, s.entry_size});
  }
  return out;
}

std::string ElfFile::build_id_note(std::string_view id) const {
  TargetBytes note(target_);
  note.u32(kNoteName.size()).u32(id.size()).u32(NT_GNU_BUILD_ID).raw(kNoteName).raw(id);
  return std::string(note.view());
}

Result<void> ElfFile::write(OutputFile& out) {
  add_names();
  lay_out();
  const std::string headers = section_headers();
  if (!target_.is_64 && offset_of_sections() + headers.size() > UINT32_MAX) {
    return Failure({Errc::too_large, "the code does not fit a 32-bit ELF file", 0, {}});
  }
  ElfSink sink(out);
  sink.write(header());
  sink.write(segments());
  for (std::size_t i = 0; i < sections_.size() && !out.failed(); ++i) {
    if (sections_[i].type == SHT_NOBITS) continue;
    assert(sink.position() <= offsets_[i]);
    sink.zeros(offsets_[i] - sink.position());
    sections_[i].write(sink);
  }
  if (out.failed()) return {};
  assert(sink.position() == end_);
  sink.zeros(offset_of_sections() - end_);
  sink.write(headers);
  return {};
}

}  // namespace perfmap
