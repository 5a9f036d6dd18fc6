// SPDX-License-Identifier: MIT
#include "inject/elf_writer.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <libelf.h>

#include "elf/target.hpp"

namespace perfmap {

namespace {

struct Round {
  std::uint32_t mix;
  std::uint32_t constant;
};

Round round_of(unsigned i, std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  if (i < 20) return {(b & c) | (~b & d), 0x5a827999};
  if (i < 40) return {b ^ c ^ d, 0x6ed9eba1};
  if (i < 60) return {(b & c) | (b & d) | (c & d), 0x8f1bbcdc};
  return {b ^ c ^ d, 0xca62c1d6};
}

std::uint32_t big_endian(const char* bytes) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

}  // namespace

void Sha1::block(const char* bytes) noexcept {
  std::array<std::uint32_t, 80> word;
  for (std::size_t i = 0; i < 16; ++i) word[i] = big_endian(bytes + 4 * i);
  for (std::size_t i = 16; i < 80; ++i) {
    word[i] = std::rotl(word[i - 3] ^ word[i - 8] ^ word[i - 14] ^ word[i - 16], 1);
  }
  auto [a, b, c, d, e] = state_;
  for (unsigned i = 0; i < 80; ++i) {
    const Round round = round_of(i, b, c, d);
    const std::uint32_t next = std::rotl(a, 5) + round.mix + e + round.constant + word[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state_ = {state_[0] + a, state_[1] + b, state_[2] + c, state_[3] + d, state_[4] + e};
}

void Sha1::update(std::string_view bytes) noexcept {
  if (bytes.empty()) return;
  const std::size_t held = size_ % rest_.size();
  size_ += bytes.size();
  if (held != 0) {
    const std::size_t taken = std::min(bytes.size(), rest_.size() - held);
    std::memcpy(rest_.data() + held, bytes.data(), taken);
    bytes.remove_prefix(taken);
    if (held + taken < rest_.size()) return;
    block(rest_.data());
  }
  for (; bytes.size() >= rest_.size(); bytes.remove_prefix(rest_.size())) block(bytes.data());
  if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
}

std::array<char, Sha1::kSize> Sha1::digest() noexcept {
  const std::uint64_t bits = size_ * 8;
  update(std::string_view("\x80", 1));
  while (size_ % rest_.size() != 56) update(std::string_view("\0", 1));
  std::array<char, 8> length;
  for (unsigned i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  update({length.data(), length.size()});
  std::array<char, kSize> out;
  for (unsigned i = 0; i < kSize; ++i)
    out[i] = static_cast<char>(state_[i / 4] >> (24 - i % 4 * 8));
  return out;
}

namespace {

using Translate = Elf_Data* (*)(Elf_Data*, const Elf_Data*, unsigned);

template <class T>
void append(std::string& out, const Target& target, T value, Elf_Type type, Translate translate) {
  char bytes[sizeof value];
  Elf_Data from{};
  from.d_buf = &value;
  from.d_type = type;
  from.d_version = EV_CURRENT;
  from.d_size = sizeof value;
  Elf_Data to = from;
  to.d_buf = bytes;
  translate(&to, &from, target.order == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB);
  out.append(bytes, sizeof bytes);
}

std::uint32_t cut(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }

}  // namespace

void append_header(std::string& out, const Target& target, const Elf64_Ehdr& h) {
  if (target.is_64) return append(out, target, h, ELF_T_EHDR, elf64_xlatetof);
  Elf32_Ehdr small{};
  std::copy(std::begin(h.e_ident), std::end(h.e_ident), small.e_ident);
  small.e_type = h.e_type;
  small.e_machine = h.e_machine;
  small.e_version = h.e_version;
  small.e_entry = cut(h.e_entry);
  small.e_phoff = cut(h.e_phoff);
  small.e_shoff = cut(h.e_shoff);
  small.e_flags = h.e_flags;
  small.e_ehsize = h.e_ehsize;
  small.e_phentsize = h.e_phentsize;
  small.e_phnum = h.e_phnum;
  small.e_shentsize = h.e_shentsize;
  small.e_shnum = h.e_shnum;
  small.e_shstrndx = h.e_shstrndx;
  append(out, target, small, ELF_T_EHDR, elf32_xlatetof);
}

void append_segment(std::string& out, const Target& target, const Elf64_Phdr& p) {
  if (target.is_64) return append(out, target, p, ELF_T_PHDR, elf64_xlatetof);
  const Elf32_Phdr small{p.p_type,        cut(p.p_offset), cut(p.p_vaddr), cut(p.p_paddr),
                         cut(p.p_filesz), cut(p.p_memsz),  p.p_flags,      cut(p.p_align)};
  append(out, target, small, ELF_T_PHDR, elf32_xlatetof);
}

void append_section(std::string& out, const Target& target, const Elf64_Shdr& s) {
  if (target.is_64) return append(out, target, s, ELF_T_SHDR, elf64_xlatetof);
  const Elf32_Shdr small{s.sh_name,           s.sh_type,        cut(s.sh_flags), cut(s.sh_addr),
                         cut(s.sh_offset),    cut(s.sh_size),   s.sh_link,       s.sh_info,
                         cut(s.sh_addralign), cut(s.sh_entsize)};
  append(out, target, small, ELF_T_SHDR, elf32_xlatetof);
}

void append_symbol(std::string& out, const Target& target, const Elf64_Sym& s) {
  if (target.is_64) return append(out, target, s, ELF_T_SYM, elf64_xlatetof);
  const Elf32_Sym small{s.st_name, cut(s.st_value), cut(s.st_size),
                        s.st_info, s.st_other,      s.st_shndx};
  append(out, target, small, ELF_T_SYM, elf32_xlatetof);
}

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

bool ElfFile::lay_out() {
  const ElfSizes sizes(target_);
  std::uint64_t at = sizes.header + std::uint64_t{sizes.segment} * segment_count();
  for (const ElfSection& section : sections_) {
    at = rounded_up(at, section.alignment);
    if (section.offset != 0 && section.offset < at) return false;
    at = std::max(at, section.offset);
    offsets_.push_back(at);
    if (section.type != SHT_NOBITS) at += section.size;
  }
  end_ = at;
  return true;
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
  if (!lay_out()) return Failure(Error::too_large("the sections of an ELF file overlap"));
  const std::string headers = section_headers();
  if (!target_.is_64 && offset_of_sections() + headers.size() > UINT32_MAX) {
    return Failure(Error::too_large("the code does not fit a 32-bit ELF file"));
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
