// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <elf.h>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/target.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// SHA-1, from which linkers make build ids. Used to distinguish contents, not for security.
/// Source: FIPS 180-4.
class Sha1 {
 public:
  static constexpr std::size_t kSize = 20;

  void update(std::string_view bytes) noexcept;
  /// Call once, at the end.
  std::array<char, kSize> digest() noexcept;

 private:
  void block(const char* bytes) noexcept;

  std::array<std::uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                         0xc3d2e1f0};
  std::array<char, 64> rest_{};
  std::uint64_t size_ = 0;
};

/// Appends ELF structures to `out` in the target's byte order and class; 64-bit fields are
/// truncated in 32-bit files.
void append_header(std::string& out, const Target& target, const Elf64_Ehdr& header);
void append_segment(std::string& out, const Target& target, const Elf64_Phdr& segment);
void append_section(std::string& out, const Target& target, const Elf64_Shdr& section);
void append_symbol(std::string& out, const Target& target, const Elf64_Sym& symbol);

/// Their sizes in the target's class.
struct ElfSizes {
  explicit ElfSizes(const Target& target) noexcept
      : header(target.is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)),
        segment(target.is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)),
        section(target.is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)),
        symbol(target.is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)) {}

  std::uint16_t header;
  std::uint16_t segment;
  std::uint16_t section;
  std::uint16_t symbol;
};

/// Receives the bytes of an ELF file in order.
class ElfSink {
 public:
  explicit ElfSink(OutputFile& out) : out_(&out) {}

  void write(std::string_view bytes);
  void zeros(std::uint64_t count);
  std::uint64_t position() const noexcept { return position_; }
  /// The digest of all bytes so far. Call once.
  std::array<char, Sha1::kSize> digest() noexcept { return hash_.digest(); }

 private:
  OutputFile* out_;
  Sha1 hash_;
  std::uint64_t position_ = 0;
};

struct ElfSection {
  std::string name;
  std::uint32_t type = 0;   ///< SHT_…
  std::uint64_t flags = 0;  ///< SHF_…; sections with SHF_ALLOC get a segment
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  std::uint64_t offset = 0;  ///< in the file; 0: after the section before it
  std::uint64_t entry_size = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  /// Writes `size` bytes; not called for SHT_NOBITS. Everything that it uses must live until
  /// ElfFile::write() returns.
  std::function<void(ElfSink&)> write = {};
};

/// An ELF file. It is laid out first and then written sequentially, so that it can go through a
/// pipe: headers, segments, sections in order, section names, the build id (whose content is known
/// last), section headers.
class ElfFile {
 public:
  /// `type` is ET_EXEC or ET_DYN.
  ElfFile(const Target& target, std::uint16_t type) : target_(target), type_(type) {}

  /// Adds a section; returns its number, at most 0xfeff.
  std::uint32_t add(ElfSection section);
  /// The number that the next section gets.
  std::uint32_t next() const noexcept { return static_cast<std::uint32_t>(sections_.size()) + 1; }

  /// Makes the first `size` bytes, headers included, the first segment; sections in it get no
  /// segment of their own.
  void map_begin(std::uint64_t size) noexcept { mapped_begin_ = size; }

  /// Call once. Fails with too_large if a 32-bit file would exceed 4 GiB, or if a section before
  /// one with an offset would reach it: its bytes would be found under other addresses.
  Result<void> write(OutputFile& out);

 private:
  void add_names();
  bool lay_out();
  bool has_segment(const ElfSection& section) const noexcept;
  std::uint16_t segment_count() const noexcept;
  std::string header() const;
  std::string segments() const;
  std::string section_headers() const;
  std::string build_id_note(std::string_view id) const;
  std::uint64_t offset_of_sections() const noexcept;

  Target target_;
  std::uint16_t type_;
  std::vector<ElfSection> sections_;
  std::vector<std::uint64_t> offsets_;  // of sections_, in the file
  std::vector<std::uint32_t> names_;    // of sections_, in text_of_names_
  std::string text_of_names_ = std::string(1, '\0');
  std::uint64_t mapped_begin_ = 0;
  std::uint64_t end_ = 0;  // of the last section
};

}  // namespace perfmap
