#include "perfdata/file_header.hpp"

#include <array>
#include <cstring>
#include <string>

#include "perfdata/attributes.hpp"
#include "perfdata/features.hpp"
#include "perfdata/record_header.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kMagic = 0x32454c4946524550;  // "PERFILE2"
constexpr std::uint64_t kPipeSize = 16;
constexpr std::uint64_t kSizeWithoutFeatures = 72;
constexpr std::uint64_t kSize = 104;
constexpr unsigned kHostname = 3;

struct Section {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
Section read_section(Cursor& cursor) noexcept {
  Section section;
  section.offset = cursor.u64();
  section.size = cursor.u64();
  return section;
}

/// As much of it as there is.
std::string_view bytes_of(std::string_view file, const Section& section) noexcept {
  if (section.offset >= file.size()) return {};
  return file.substr(section.offset, section.size);
}

std::optional<bool> swapped_by_magic(std::string_view file) noexcept {
  if (file.size() < 8) return std::nullopt;
  const std::uint64_t magic = read_word(file.data(), false);
  if (magic == kMagic) return std::endian::native != std::endian::little;
  if (magic == __builtin_bswap64(kMagic)) return std::endian::native == std::endian::little;
  return std::nullopt;
}

Failure bad_format(std::string message) {
  return Failure({Errc::bad_format, std::move(message), 0, {}});
}

/// One after the other, each as long as it says. All ids together are no more than fit into the
/// file, whatever the sections say.
void read_events(std::string_view file, const Section& section, Description& description) {
  const std::endian order = order_of(description.is_swapped);
  std::string_view rest = bytes_of(file, section);
  std::uint64_t most_ids = file.size() / 8;
  while (!rest.empty()) {
    std::optional<Attributes> attributes = read_attributes(rest, order);
    if (!attributes || rest.size() < attributes->size + std::size_t{16}) return;
    Cursor tail(rest.substr(attributes->size), order);
    const Words ids(bytes_of(file, read_section(tail)), description.is_swapped);
    rest.remove_prefix(attributes->size + std::size_t{16});
    for (std::size_t i = 0; i < ids.size() && most_ids > 0; ++i, --most_ids) {
      attributes->event.ids.push_back(ids[i]);
    }
    description.add(std::move(attributes->event));
  }
}

void read_features(std::string_view file, std::uint64_t table,
                   const std::array<std::uint64_t, 4>& bits, Description& description) {
  if (table >= file.size()) return;
  Cursor cursor(file.substr(table), order_of(description.is_swapped));
  for (unsigned feature = 0; feature < 256; ++feature) {
    if ((bits.at(feature / 64) >> (feature % 64) & 1) == 0) continue;
    const Section section = read_section(cursor);
    if (!cursor.ok()) return;
    read_feature(feature, bytes_of(file, section), description);
  }
}

Result<RecordBytes> read_sections(std::string_view file, std::uint64_t size,
                                  Description& description) {
  Cursor cursor(file.substr(kPipeSize), order_of(description.is_swapped));
  const std::uint64_t entry_size = cursor.u64();
  const Section attributes = read_section(cursor);
  const Section data = read_section(cursor);
  if (!cursor.ok() || file.size() < size) return bad_format("it ends within its header");
  if (entry_size < kSmallestAttributes + 16) {
    return bad_format("its events are described in " + std::to_string(entry_size) + " bytes each");
  }
  read_events(file, attributes, description);

  RecordBytes records{data.offset, file.size(), data.offset};
  description.facts.was_killed = data.size == 0;
  if (data.offset > file.size()) records.begin = file.size();
  if (description.facts.was_killed) return records;
  const bool fits = data.offset <= file.size() && data.size <= file.size() - data.offset;
  records.promised = data.size < UINT64_MAX - data.offset ? data.offset + data.size : UINT64_MAX;
  if (!fits) return records;
  records.end = records.promised;
  if (size == kSize) {
    const auto bits = read_bitmap(file.substr(kSizeWithoutFeatures), description.is_swapped);
    read_features(file, records.end, bits, description);
  }
  return records;
}

}  // namespace

Result<RecordBytes> read_file_header(std::string_view file, Description& description) {
  const std::optional<bool> swapped = swapped_by_magic(file);
  if (!swapped) return bad_format("it does not begin as a recording of perf");
  if (file.size() < kPipeSize) return bad_format("it ends within its header");
  description.is_swapped = *swapped;
  description.facts.is_swapped = *swapped;
  const std::uint64_t size = read_word(file.data() + 8, *swapped);
  if (size == kPipeSize) {
    description.facts.is_pipe = true;
    return RecordBytes{kPipeSize, file.size(), file.size()};
  }
  if (size != kSize && size != kSizeWithoutFeatures) {
    return bad_format("its header has " + std::to_string(size) + " bytes");
  }
  return read_sections(file, size, description);
}

std::array<std::uint64_t, 4> read_bitmap(std::string_view bytes, bool swapped) noexcept {
  std::array<std::uint64_t, 4> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits.at(i) = read_word(bytes.data() + 8 * i, swapped);
  }
  if (!swapped || (bits[0] >> kHostname & 1) != 0) return bits;
  for (std::uint64_t& word : bits) word = word << 32 | word >> 32;
  return bits;
}

bool is_recording(std::string_view bytes) noexcept { return swapped_by_magic(bytes).has_value(); }

}  // namespace perfmap
