#include "inject/rewritten_file.hpp"

#include "perfdata/file_header.hpp"
#include "perfdata/record_header.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kPipeSize = 16;
constexpr std::uint64_t kSizeWithoutFeatures = 72;
constexpr std::uint64_t kSize = 104;
constexpr unsigned kCompressed = 27;  // the feature

std::string_view section_bytes(std::string_view file, Cursor& cursor) noexcept {
  const std::uint64_t offset = cursor.u64();
  const std::uint64_t size = cursor.u64();
  if (!cursor.ok() || offset >= file.size()) return {};
  return file.substr(offset, size);
}

}  // namespace

RewrittenFile::RewrittenFile(const Recording& recording)
    : file_(recording.input().text()),
      room_(file_.size()),
      swapped_(recording.facts().is_swapped),
      is_pipe_(recording.facts().is_pipe),
      was_killed_(recording.facts().was_killed) {
  if (!is_pipe_) read_header();
}

/// Recording::open() has read it, and refused what has none.
void RewrittenFile::read_header() {
  const std::uint64_t size = read_word(file_.data() + 8, swapped_);
  Cursor cursor(file_.substr(kPipeSize), order_of(swapped_));
  entry_size_ = cursor.u64();
  read_events(section_bytes(file_, cursor));
  const std::uint64_t data_offset = cursor.u64();
  const std::uint64_t data_size = cursor.u64();
  const bool fits = data_offset <= file_.size() && data_size <= file_.size() - data_offset;
  if (was_killed_ || !fits || size != kSize) return;
  read_features(data_offset + data_size, file_.substr(kSizeWithoutFeatures, 32));
}

void RewrittenFile::read_events(std::string_view section) {
  const std::endian order = order_of(swapped_);
  while (!section.empty()) {
    const auto attributes = read_attributes(section, order);
    if (!attributes || section.size() < attributes->size + std::size_t{16}) return;
    Cursor tail(section.substr(attributes->size), order);
    events_.push_back({section.substr(0, attributes->size), take(section_bytes(file_, tail))});
    section.remove_prefix(attributes->size + std::size_t{16});
  }
}

void RewrittenFile::read_features(std::uint64_t table, std::string_view bitmap) {
  if (table >= file_.size()) return;
  Cursor cursor(file_.substr(table), order_of(swapped_));
  bitmap_ = read_bitmap(bitmap, swapped_);
  std::array<std::uint64_t, 4> kept = {};
  for (unsigned feature = 0; feature < 256; ++feature) {
    const std::uint64_t bit = std::uint64_t{1} << (feature % 64);
    if ((bitmap_.at(feature / 64) & bit) == 0) continue;
    const std::string_view bytes = section_bytes(file_, cursor);
    if (!cursor.ok()) break;
    if (feature == kCompressed) continue;
    kept.at(feature / 64) |= bit;
    features_.push_back(take(bytes));
  }
  bitmap_ = kept;
}

std::string_view RewrittenFile::take(std::string_view bytes) noexcept {
  const std::string_view taken = bytes.substr(0, room_);
  room_ -= taken.size();
  return taken;
}

void RewrittenFile::add_word(std::string& out, std::uint64_t word) const {
  if (swapped_) word = __builtin_bswap64(word);
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

std::uint64_t RewrittenFile::data_offset() const noexcept {
  std::uint64_t offset = kSize;
  for (const Event& event : events_) offset += event.ids.size() + event.attributes.size() + 16;
  return offset;
}

void RewrittenFile::write_begin(std::uint64_t data_size, OutputFile& out) const {
  if (is_pipe_) return out.write(file_.substr(0, kPipeSize));
  std::uint64_t ids_size = 0;
  std::uint64_t attributes_size = 0;
  for (const Event& event : events_) {
    ids_size += event.ids.size();
    attributes_size += event.attributes.size() + 16;
  }
  std::string bytes(file_.substr(0, 8));
  for (const std::uint64_t word : {kSize, entry_size_, kSize + ids_size, attributes_size,
                                   data_offset(), data_size, std::uint64_t{0}, std::uint64_t{0}}) {
    add_word(bytes, word);
  }
  for (const std::uint64_t word : bitmap_) add_word(bytes, word);
  for (const Event& event : events_) bytes += event.ids;
  std::uint64_t ids = kSize;
  for (const Event& event : events_) {
    bytes += event.attributes;
    add_word(bytes, ids);
    add_word(bytes, event.ids.size());
    ids += event.ids.size();
  }
  out.write(bytes);
}

void RewrittenFile::write_end(std::uint64_t data_size, OutputFile& out) const {
  std::string table;
  std::uint64_t at = data_offset() + data_size + features_.size() * 16;
  for (const std::string_view feature : features_) {
    add_word(table, at);
    add_word(table, feature.size());
    at += feature.size();
  }
  out.write(table);
  for (const std::string_view feature : features_) out.write(feature);
}

}  // namespace perfmap
