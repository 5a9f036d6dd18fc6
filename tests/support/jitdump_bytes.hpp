// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/jitdump.hpp"

namespace perfmap::test {

/// Builds the bytes of a jitdump field by field, to test the reader. Knows only the format, and
/// uses nothing of the library's writer.
class DumpBytes {
 public:
  explicit DumpBytes(std::endian order = std::endian::native) : order_(order) {}

  DumpBytes& u32(std::uint64_t value) { return number(value, 4); }
  DumpBytes& u64(std::uint64_t value) { return number(value, 8); }
  DumpBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }

  struct Header {
    std::uint32_t version = 1;
    std::uint32_t total_size = 40;
    std::uint32_t elf_mach = 62;
    std::uint32_t pad1 = 0;
    std::uint32_t pid = 42;
    std::uint64_t timestamp = 1;
    std::uint64_t flags = 0;
  };
  DumpBytes& header() { return header(Header()); }
  DumpBytes& header(const Header& h) {
    u32(0x4A695444).u32(h.version).u32(h.total_size).u32(h.elf_mach).u32(h.pad1).u32(h.pid);
    return u64(h.timestamp).u64(h.flags);
  }
  DumpBytes& prefix(std::uint32_t id, std::size_t size, std::uint64_t time) {
    return u32(id).u32(size).u64(time);
  }
  DumpBytes& load(std::uint64_t time, std::uint64_t address, std::string_view name,
                  std::string_view code, std::uint64_t index = 1) {
    prefix(0, 56 + name.size() + 1 + code.size(), time).u32(42).u32(43).u64(address).u64(address);
    return u64(code.size()).u64(index).raw(name).raw({"\0", 1}).raw(code);
  }
  /// As written by producers that have no code bytes.
  DumpBytes& load_of_size(std::uint64_t time, std::uint64_t address, std::uint64_t size,
                          std::string_view name, std::uint64_t index = 1) {
    prefix(0, 56 + name.size() + 1, time).u32(42).u32(43).u64(address).u64(address).u64(size);
    return u64(index).raw(name).raw({"\0", 1});
  }
  DumpBytes& move(std::uint64_t time, std::uint64_t from, std::uint64_t to, std::uint64_t size,
                  std::uint64_t index = 1) {
    prefix(1, 64, time).u32(42).u32(43).u64(to).u64(from).u64(to).u64(size).u64(index);
    return *this;
  }
  struct Line {
    std::uint64_t address;
    std::int32_t line;
    std::int32_t column;
    std::string_view file;
  };
  DumpBytes& debug_info(std::uint64_t time, std::uint64_t address,
                        std::initializer_list<Line> lines, std::size_t padding = 0) {
    std::size_t size = 32 + padding;
    for (const Line& line : lines) size += 17 + line.file.size();
    prefix(2, size, time).u64(address).u64(lines.size());
    for (const Line& line : lines) {
      u64(line.address).u32(static_cast<std::uint32_t>(line.line));
      u32(static_cast<std::uint32_t>(line.column)).raw(line.file).raw({"\0", 1});
    }
    return raw(std::string(padding, '\0'));
  }
  DumpBytes& close(std::uint64_t time) { return prefix(3, 16, time); }
  DumpBytes& unwinding(std::uint64_t time, std::string_view data, std::uint64_t header_size,
                       std::uint64_t mapped_size, std::size_t padding = 0) {
    prefix(4, 40 + data.size() + padding, time).u64(data.size()).u64(header_size).u64(mapped_size);
    return raw(data).raw(std::string(padding, '\0'));
  }

  std::string text() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

 private:
  DumpBytes& number(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) {
      const unsigned at = order_ == std::endian::little ? i : size - 1 - i;
      bytes_ += static_cast<char>(value >> (8 * at));
    }
    return *this;
  }

  std::endian order_;
  std::string bytes_;
};

inline Jitdump dump_of(std::string bytes, Jitdump::Options options = {}) {
  return Jitdump(Input::from_text(std::move(bytes), "jit-42.dump"), options);
}

}  // namespace perfmap::test
