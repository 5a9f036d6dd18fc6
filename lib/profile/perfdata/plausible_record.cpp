#include "perfdata/plausible_record.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kLastKernelType = 22;
constexpr std::uint32_t kFirstUserType = 64;
constexpr std::uint32_t kLastUserType = 86;

std::uint16_t smallest_size(std::uint32_t type) noexcept {
  switch (static_cast<RecordType>(type)) {
    case RecordType::mmap: return 48;
    case RecordType::mmap2: return 80;
    case RecordType::comm: return 24;
    case RecordType::exit:
    case RecordType::fork: return 32;
    case RecordType::lost:
    case RecordType::sample: return 16;
    default: return kRecordHeader;
  }
}

bool is_plausible(const RecordHeader& header) noexcept {
  const bool known = (header.type >= 1 && header.type <= kLastKernelType) ||
                     (header.type >= kFirstUserType && header.type <= kLastUserType);
  return known && header.size >= smallest_size(header.type);
}

/// So many in a row, or fewer up to the very end, which may cut the last one off.
bool begins_records(std::string_view bytes, std::size_t at, bool swapped) noexcept {
  constexpr int kInARow = 6;
  constexpr int kBeforeCut = 2;
  for (int i = 0; i < kInARow; ++i) {
    if (bytes.size() - at < kRecordHeader) return i > 0 && at == bytes.size();
    const RecordHeader header = read_header(bytes.data() + at, swapped);
    if (!is_plausible(header)) return false;
    if (header.size > bytes.size() - at) return i >= kBeforeCut;
    at += header.size;
  }
  return true;
}

}  // namespace

std::size_t find_records(std::string_view bytes, std::size_t from, bool swapped) noexcept {
  for (std::size_t at = from; at < bytes.size(); ++at) {
    if (begins_records(bytes, at, swapped)) return at;
  }
  return bytes.size();
}

}  // namespace perfmap
