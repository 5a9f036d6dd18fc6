// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace perfmap::test {

/// The bytes of a tar archive, entry by entry, also of archives that no tar would write.
class TarBytes {
 public:
  /// Changes the header of one entry, before its checksum is computed.
  struct Change {
    std::size_t offset;
    std::string bytes;
  };

  TarBytes& entry(const std::string& name, char type, std::string_view data,
                  std::initializer_list<Change> changes = {}) {
    header(name, type, data.size(), changes);
    text_ += data;
    return pad();
  }
  TarBytes& file(const std::string& name, std::string_view data) { return entry(name, '0', data); }
  TarBytes& directory(const std::string& name) { return entry(name, '5', ""); }
  /// A header alone, with any size.
  TarBytes& header(const std::string& name, char type, std::uint64_t size,
                   std::initializer_list<Change> changes = {}) {
    std::string block(512, '\0');
    name.copy(block.data(), 100);
    put(block, 100, "0000644");
    put(block, 108, "0001750");
    put(block, 116, "0001750");
    char digits[24];
    std::snprintf(digits, sizeof digits, "%011llo", static_cast<unsigned long long>(size));
    put(block, 124, std::string(digits).substr(0, 11));
    put(block, 136, "14613721000");
    put(block, 148, "        ");
    block[156] = type;
    block.replace(257, 8, std::string_view("ustar\00000", 8));
    for (const Change& one : changes) put(block, one.offset, one.bytes);
    unsigned sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    std::snprintf(digits, sizeof digits, "%06o", sum);
    put(block, 148, std::string(digits) + std::string("\0 ", 2));
    text_ += block;
    return *this;
  }
  /// A pax header with these records, such as "path=x".
  TarBytes& pax(std::string_view record, char type = 'x') {
    std::size_t length = record.size() + 3;
    while (std::to_string(length).size() + 2 + record.size() != length) ++length;
    return entry("PaxHeader", type, std::to_string(length) + " " + std::string(record) + "\n");
  }
  TarBytes& bytes(std::string_view more) {
    text_ += more;
    return *this;
  }
  /// With the end mark.
  std::string text() const { return text_ + std::string(1024, '\0'); }
  std::string torn() const { return text_; }

 private:
  static void put(std::string& block, std::size_t offset, std::string_view bytes) {
    block.replace(offset, bytes.size(), bytes);
  }
  TarBytes& pad() {
    text_.append((512 - text_.size() % 512) % 512, '\0');
    return *this;
  }

  std::string text_;
};

}  // namespace perfmap::test
