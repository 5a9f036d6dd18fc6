#include "unwind/jit_cfi.hpp"

#include "modules/target.hpp"

namespace perfmap {

std::optional<CfiRow> JitCfi::find(const DumpedCode& code, std::uint16_t machine) {
  if (tables_.size() >= kMostTables) tables_.clear();
  const auto [place, is_new] = tables_.try_emplace(Key{code.dump, code.load});
  if (is_new) place->second = make(code, machine);
  const auto record = code.dump->record_at(code.load);
  const auto load = record ? decode_load(*record) : std::nullopt;
  if (!load || !place->second) return std::nullopt;
  return place->second->row_at(load->range.begin + code.offset);
}

/// Its addresses count from where perf would map it: behind the code, at a multiple of 8.
std::unique_ptr<const CfiTable> JitCfi::make(const DumpedCode& code, std::uint16_t machine) {
  const auto details = details_.try_emplace(code.dump, *code.dump).first;
  const auto offset = details->second.unwinding(code.load);
  const auto record = offset ? code.dump->record_at(*offset) : std::nullopt;
  const auto unwinding = record ? decode_unwinding(*record) : std::nullopt;
  const auto load_record = code.dump->record_at(code.load);
  const auto load = load_record ? decode_load(*load_record) : std::nullopt;
  if (!unwinding || !load || unwinding->eh_frame.empty()) return nullptr;
  const Address end = load->range.begin + load->range.size;
  Target target = target_of(code.dump->header());
  target.machine = machine;
  return std::make_unique<const CfiTable>(unwinding->eh_frame, (end + 7) & ~Address{7}, target);
}

}  // namespace perfmap
