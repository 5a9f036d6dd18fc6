#include "perfdata/attributes.hpp"

#include "perfdata/event_names.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::uint8_t reversed(std::uint8_t byte) noexcept {
  std::uint8_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    result = static_cast<std::uint8_t>(result << 1 | (byte >> i & 1));
  return result;
}

/// The flags are a bit field: from its first byte on, and in a byte from the lowest bit on where
/// the machine is little-endian, from the highest where it is not.
std::uint64_t read_flags(std::string_view bytes, std::endian order) noexcept {
  std::uint64_t flags = 0;
  for (unsigned i = 0; i < 8; ++i) {
    auto byte = static_cast<std::uint8_t>(bytes[i]);
    if (order == std::endian::big) byte = reversed(byte);
    flags |= std::uint64_t{byte} << (8 * i);
  }
  return flags;
}

void take_flags(std::uint64_t flags, Attributes& attributes) noexcept {
  const auto has = [flags](unsigned bit) { return (flags >> bit & 1) != 0; };
  attributes.excludes_user = has(4);
  attributes.excludes_kernel = has(5);
  attributes.excludes_hypervisor = has(6);
  attributes.precise = flags >> 15 & 3;
  attributes.event.is_frequency = has(10);
  attributes.event.has_sample_ids = has(18);
  attributes.event.has_build_ids = has(34);
}

}  // namespace

std::optional<Attributes> read_attributes(std::string_view bytes, std::endian order) {
  if (bytes.size() < kSmallestAttributes) return std::nullopt;
  Attributes attributes;
  RecordedEvent& event = attributes.event;
  Cursor head(bytes, order);
  event.type = head.u32();
  attributes.size = head.u32();
  if (attributes.size == 0) attributes.size = kSmallestAttributes;
  if (attributes.size < kSmallestAttributes || attributes.size > bytes.size()) return std::nullopt;

  Cursor cursor(bytes.substr(0, attributes.size), order);
  cursor.skip(8);
  event.config = cursor.u64();
  event.period = cursor.u64();
  event.sample_type = cursor.u64();
  event.read_format = cursor.u64();
  const std::uint64_t flags = read_flags(cursor.bytes(8), order);
  take_flags(flags, attributes);
  cursor.skip(4 + 4);  // when to wake up; which accesses a breakpoint is for
  attributes.breakpoint = cursor.u64();
  cursor.skip(8);
  event.branch_sample_type = cursor.u64();
  event.user_registers = cursor.u64();
  event.user_stack = cursor.u32();
  const std::int32_t clock = cursor.i32();
  if (cursor.ok() && (flags >> 25 & 1) != 0) event.clock = clock;
  event.interrupt_registers = cursor.u64();
  event.name = made_up_name(attributes);
  return attributes;
}

}  // namespace perfmap
