// SPDX-License-Identifier: MIT
#include "support/recording_bytes.hpp"

#include <array>

namespace perfmap::test {

std::string RecordingBytes::sample_body(const EventShape& shape, const SampleValues& v) const {
  Bytes b(order_);
  const auto has = [&](std::uint64_t bits) { return (shape.sample_type & bits) != 0; };
  if (has(kIdentifier)) b.u64(v.id);
  if (has(kIp)) b.u64(v.ip);
  if (has(kTid)) b.u32(v.pid).u32(v.tid);
  if (has(kTime)) b.u64(v.time);
  if (has(kAddr)) b.u64(v.addr);
  if (has(kId)) b.u64(v.id);
  if (has(kStreamId)) b.u64(v.stream_id);
  if (has(kCpu)) b.u32(v.cpu).u32(0);
  if (has(kPeriod)) b.u64(v.period);
  if (has(kRead)) b.u64s(v.read);
  if (has(kCallchain)) b.u64(v.callchain.size()).u64s(v.callchain);
  if (has(kRaw)) b.u32(v.raw.size()).raw(v.raw);
  if (has(kBranchStack)) {
    b.u64(v.branches.size() / 3);
    if ((shape.branch_sample_type >> 17 & 1) != 0) b.u64(7);
    b.u64s(v.branches);
    if ((shape.branch_sample_type >> 19 & 1) != 0) b.zeros(v.branches.size() / 3 * 8);
  }
  if (has(kRegsUser)) {
    b.u64(v.abi_user);
    if (v.abi_user != 0) b.u64s(v.regs_user);
  }
  if (has(kStackUser)) {
    b.u64(v.stack.size()).raw(v.stack);
    if (!v.stack.empty()) b.u64(v.stack_used);
  }
  if (has(kWeight | kWeightStruct)) b.u64(11);
  if (has(kDataSrc)) b.u64(12);
  if (has(kTransaction)) b.u64(13);
  if (has(kRegsIntr)) {
    b.u64(v.abi_intr);
    if (v.abi_intr != 0) b.u64s(v.regs_intr);
  }
  if (has(kPhysAddr)) b.u64(14);
  if (has(kCgroup)) b.u64(15);
  if (has(kDataPageSize)) b.u64(16);
  if (has(kCodePageSize)) b.u64(17);
  if (has(kAux)) b.u64(v.aux.size()).raw(v.aux);
  return b.text();
}

std::string RecordingBytes::file(const std::vector<EventShape>& shapes, std::string_view data,
                                 const Parts& parts) const {
  std::array<std::uint64_t, 4> bitmap{};
  for (const auto& [feature, bytes] : parts.features) {
    bitmap.at(feature / 64) |= std::uint64_t{1} << (feature % 64);
  }
  std::uint64_t ids_size = 0;
  std::uint64_t events_size = 0;
  for (const EventShape& shape : shapes) {
    ids_size += 8 * shape.ids.size();
    events_size += shape.size + 16;
  }
  std::uint64_t table = 0;
  std::uint64_t features_size = 0;
  for (const auto& [feature, bytes] : parts.features) {
    table += 16;
    features_size += bytes.size();
  }
  const std::uint64_t ids = parts.events_last
                                ? parts.header_size + data.size() + table + features_size
                                : parts.header_size;
  const std::uint64_t events = ids + ids_size;
  const std::uint64_t records = parts.events_last ? parts.header_size : events + events_size;
  const std::uint64_t entry =
      parts.attr_size != 0 ? parts.attr_size : (shapes.empty() ? 144 : shapes[0].size + 16);

  Bytes head(order_);
  head.u64(0x32454c4946524550).u64(parts.header_size).u64(entry).u64(events).u64(events_size);
  head.u64(records).u64(parts.was_killed ? 0 : data.size()).u64(0).u64(0);
  if (parts.header_size == 104) {
    for (const std::uint64_t word : bitmap) {
      if (parts.bitmap_of_32) {
        head.u32(word & UINT32_MAX).u32(word >> 32);
      } else {
        head.u64(word);
      }
    }
  }
  Bytes described(order_);
  for (const EventShape& shape : shapes) described.u64s(shape.ids);
  std::uint64_t at = ids;
  for (const EventShape& shape : shapes) {
    described.raw(event(shape)).u64(at).u64(8 * shape.ids.size());
    at += 8 * shape.ids.size();
  }
  Bytes features(order_);
  at = records + data.size() + table;
  for (const auto& [feature, bytes] : parts.features) {
    features.u64(at).u64(bytes.size());
    at += bytes.size();
  }
  for (const auto& [feature, bytes] : parts.features) features.raw(bytes);

  if (!parts.events_last) head.raw(described.text());
  head.raw(data).raw(features.text());
  if (parts.events_last) head.raw(described.text());
  return head.text();
}

}  // namespace perfmap::test
