#include "perfdata/record_header.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

/// A cursor over the body of a record.
Cursor body_of(const RecordView& record) noexcept {
  const std::string_view body =
      record.bytes.size() < kRecordHeader ? "" : record.bytes.substr(kRecordHeader);
  return Cursor(body, order_of(record.is_swapped));
}

void take_identity(Cursor& body, const RecordView& record, MmapEvent& event) noexcept {
  constexpr std::size_t kMostBuildId = 20;
  if ((record.misc & misc_bit::kMmapBuildId) == 0) {
    event.device_major = body.u32();
    event.device_minor = body.u32();
    event.inode = body.u64();
    event.inode_generation = body.u64();
    return;
  }
  const std::size_t size = body.u8();
  body.skip(3);
  event.build_id = body.bytes(kMostBuildId).substr(0, size);
}

void take_access(Cursor& body, MmapEvent& event) noexcept {
  constexpr std::uint32_t kRead = 1;
  constexpr std::uint32_t kWrite = 2;
  constexpr std::uint32_t kExecute = 4;
  constexpr std::uint32_t kMapShared = 1;
  const std::uint32_t protection = body.u32();
  event.access.read = (protection & kRead) != 0;
  event.access.write = (protection & kWrite) != 0;
  event.access.execute = (protection & kExecute) != 0;
  event.access.shared = (body.u32() & kMapShared) != 0;
}

}  // namespace

std::optional<MmapEvent> decode_mmap(const RecordView& record) noexcept {
  const bool has_more = record.type == RecordType::mmap2;
  if (!has_more && record.type != RecordType::mmap) return std::nullopt;
  Cursor body = body_of(record);
  MmapEvent event;
  event.time = record.time;
  event.pid = body.i32();
  body.skip(4);  // the thread that did it
  const Address begin = body.u64();
  event.range = AddressRange::clamped(begin, body.u64());
  event.offset = body.u64();
  if (has_more) {
    take_identity(body, record, event);
    take_access(body, event);
  } else {
    event.access.execute = (record.misc & misc_bit::kMmapData) == 0;
  }
  event.name = body.c_string();
  if (!body.ok()) return std::nullopt;
  return event;
}

std::optional<CommEvent> decode_comm(const RecordView& record) noexcept {
  if (record.type != RecordType::comm) return std::nullopt;
  Cursor body = body_of(record);
  CommEvent event;
  event.time = record.time;
  event.pid = body.i32();
  event.tid = body.i32();
  event.comm = body.c_string();
  event.exec = (record.misc & misc_bit::kCommExec) != 0;
  if (!body.ok()) return std::nullopt;
  return event;
}

std::optional<ForkEvent> decode_fork(const RecordView& record) noexcept {
  if (record.type != RecordType::fork) return std::nullopt;
  Cursor body = body_of(record);
  ForkEvent event;
  event.time = record.time;
  event.pid = body.i32();
  event.parent = body.i32();
  event.tid = body.i32();
  event.parent_tid = body.i32();
  event.lived_before = (record.misc & misc_bit::kForkExec) != 0;
  body.skip(8);  // the time
  if (!body.ok()) return std::nullopt;
  return event;
}

std::optional<ExitEvent> decode_exit(const RecordView& record) noexcept {
  if (record.type != RecordType::exit) return std::nullopt;
  Cursor body = body_of(record);
  ExitEvent event;
  event.time = record.time;
  event.pid = body.i32();
  body.skip(4);  // the parent
  event.tid = body.i32();
  body.skip(4 + 8);
  if (!body.ok()) return std::nullopt;
  return event;
}

std::optional<LostRecord> decode_lost(const RecordView& record) noexcept {
  Cursor body = body_of(record);
  if (record.type == RecordType::lost) {
    body.skip(8);  // of which event
  } else if (record.type != RecordType::lost_samples) {
    return std::nullopt;
  }
  const LostRecord lost{body.u64()};
  if (!body.ok()) return std::nullopt;
  return lost;
}

std::optional<NamespacesRecord> decode_namespaces(const RecordView& record) {
  if (record.type != RecordType::namespaces) return std::nullopt;
  Cursor body = body_of(record);
  NamespacesRecord decoded;
  decoded.pid = body.i32();
  decoded.tid = body.i32();
  const std::uint64_t count = body.u64();
  if (!body.ok() || count > body.rest().size() / 16) return std::nullopt;
  decoded.namespaces.resize(count);
  for (NamespacesRecord::Namespace& entry : decoded.namespaces) {
    entry.device = body.u64();
    entry.inode = body.u64();
  }
  return decoded;
}

std::optional<KsymbolRecord> decode_ksymbol(const RecordView& record) noexcept {
  if (record.type != RecordType::ksymbol) return std::nullopt;
  Cursor body = body_of(record);
  KsymbolRecord decoded;
  const Address begin = body.u64();
  decoded.range = AddressRange::clamped(begin, body.u32());
  decoded.type = body.u16();
  decoded.unregister = (body.u16() & 1) != 0;
  decoded.name = body.c_string();
  if (!body.ok()) return std::nullopt;
  return decoded;
}

std::optional<DeferredCallchain> decode_deferred(const RecordView& record) noexcept {
  if (record.type != RecordType::callchain_deferred) return std::nullopt;
  Cursor body = body_of(record);
  DeferredCallchain decoded;
  decoded.cookie = body.u64();
  const std::uint64_t count = body.u64();
  if (!body.ok() || count > body.rest().size() / 8) return std::nullopt;
  decoded.callchain = Words(body.bytes(count * 8), record.is_swapped);
  if (body.rest().size() >= 8) {
    decoded.pid = body.i32();
    decoded.tid = body.i32();
  }
  return decoded;
}

}  // namespace perfmap
