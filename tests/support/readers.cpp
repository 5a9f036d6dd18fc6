// SPDX-License-Identifier: MIT
#include "support/readers.hpp"

#include <algorithm>
#include <charconv>

namespace perfmap::test {
namespace {

/// Parses `text`, which must be hexadecimal digits of at most 64 bits.
std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80   ? 1
                               : byte < 0xc2 ? 0
                               : byte < 0xe0 ? 2
                               : byte < 0xf0 ? 3
                               : byte < 0xf5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t j = 1; j < length; ++j) {
      if ((static_cast<unsigned char>(text[i + j]) & 0xc0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

/// "S L NAME" with exactly one blank after each number.
std::optional<OtherEntry> strict_line(std::string_view line, bool prefix) {
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = line.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  std::string_view start = line.substr(0, first);
  std::string_view size = line.substr(first + 1, second - first - 1);
  if (prefix && start.starts_with("0x")) start.remove_prefix(2);
  if (prefix && size.starts_with("0x")) size.remove_prefix(2);
  const auto begin = hex(start);
  const auto length = hex(size);
  if (!begin || !length || *begin + *length < *begin) return std::nullopt;
  return OtherEntry{*begin, *begin + *length, std::string(line.substr(second + 1))};
}

/// bcc: strtoull, a literal blank after each number, then any white space before the name.
std::optional<OtherEntry> bcc_line(std::string_view line) {
  const std::size_t digits = line.find_first_not_of(" \t");
  if (digits == std::string_view::npos) return std::nullopt;
  auto entry = strict_line(line.substr(digits), true);
  if (!entry || entry->begin == 0) return std::nullopt;
  entry->name.erase(0, entry->name.find_first_not_of(" \t"));
  return entry;
}

bool refuses_whole_map(OtherReader reader) {
  return reader == OtherReader::blazesym || reader == OtherReader::pyroscope;
}

std::vector<OtherEntry> resolve_samply(const std::vector<OtherEntry>& all) {
  std::vector<OtherEntry> kept;
  for (const OtherEntry& one : all) {
    std::erase_if(kept, [&](const OtherEntry& old) {
      return old.begin < std::max(one.end, one.begin + 1) && one.begin < old.end;
    });
    kept.push_back(one);
  }
  return kept;
}

std::vector<OtherEntry> resolve_parca(std::vector<OtherEntry> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const OtherEntry& a, const OtherEntry& b) { return a.end < b.end; });
  for (std::size_t i = all.size(); i-- > 1;) {
    if (all[i - 1].end > all[i].begin) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return all;
}

}  // namespace

std::optional<std::vector<OtherEntry>> read_as(OtherReader reader, std::string_view text) {
  const bool unicode = reader == OtherReader::blazesym || reader == OtherReader::samply;
  if (unicode && !is_utf8(text)) return std::nullopt;
  std::vector<OtherEntry> entries;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    if (newline == std::string_view::npos && reader == OtherReader::parca) break;
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.size() + 1 >= 4096 && reader == OtherReader::parca) return std::nullopt;
    if (line.size() > 65536 && reader == OtherReader::pyroscope) return std::nullopt;
    if (line.ends_with('\r') && reader != OtherReader::bcc && reader != OtherReader::parca) {
      line.remove_suffix(1);
    }
    const bool prefix = reader != OtherReader::blazesym;
    auto entry = reader == OtherReader::bcc ? bcc_line(line) : strict_line(line, prefix);
    if (!entry && refuses_whole_map(reader)) return std::nullopt;
    if (entry && (reader != OtherReader::samply || !entry->name.empty())) {
      entries.push_back(*std::move(entry));
    }
  }
  if (reader == OtherReader::samply) return resolve_samply(entries);
  if (reader == OtherReader::parca) return resolve_parca(std::move(entries));
  std::sort(entries.begin(), entries.end(), [](const OtherEntry& a, const OtherEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  return entries;
}

std::string find_as(OtherReader reader, const std::vector<OtherEntry>& entries,
                    std::uint64_t address) {
  if (reader == OtherReader::samply || reader == OtherReader::parca) {
    for (const OtherEntry& one : entries) {
      if (one.begin <= address && address < one.end) return one.name;
    }
    return {};
  }
  // The last entry that starts at or below the address.
  const auto after = std::upper_bound(
      entries.begin(), entries.end(), address,
      [](std::uint64_t key, const OtherEntry& entry) { return key < entry.begin; });
  if (after == entries.begin()) return {};
  const OtherEntry& nearest = *std::prev(after);
  const bool exact = reader == OtherReader::blazesym && nearest.begin == address;
  return address < nearest.end || exact ? nearest.name : "";
}

}  // namespace perfmap::test
