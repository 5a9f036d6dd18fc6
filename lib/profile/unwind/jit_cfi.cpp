// SPDX-License-Identifier: MIT
#include "unwind/jit_cfi.hpp"

#include "elf/target.hpp"

namespace perfmap {

JitCfi::Code& JitCfi::code_of(const DumpedCode& code, std::uint16_t machine) {
  if (tables_.size() >= kMaxTables) tables_.clear();
  const auto [place, is_new] = tables_.try_emplace(Key{code.dump, code.load});
  if (is_new) place->second = make(code, machine);
  return place->second;
}

std::optional<CfiRow> JitCfi::find(const DumpedCode& code, std::uint16_t machine) {
  const Code& known = code_of(code, machine);
  if (!known.table) return std::nullopt;
  return known.table->row_at(known.range.begin + code.offset);
}

bool JitCfi::has_no_frame_pointer(const DumpedCode& code, std::uint16_t machine, unsigned sp) {
  constexpr unsigned kMaxRows = 256;
  Code& known = code_of(code, machine);
  if (known.has_no_frame_pointer) return *known.has_no_frame_pointer;
  bool counts_from_sp = known.table != nullptr;
  Address at = known.range.begin;
  for (unsigned rows = 0; counts_from_sp && at - known.range.begin < known.range.size; ++rows) {
    const auto row = rows < kMaxRows ? known.table->row_at(at) : std::nullopt;
    counts_from_sp = row && row->range.end() > at && row->cfa == CfiRules::Cfa::register_offset &&
                     row->cfa_register == sp;
    if (counts_from_sp) at = row->range.end();
  }
  known.has_no_frame_pointer = counts_from_sp;
  return counts_from_sp;
}

/// Its addresses are relative to where perf would map it: after the code, at a multiple of 8.
JitCfi::Code JitCfi::make(const DumpedCode& code, std::uint16_t machine) {
  const auto details = details_.try_emplace(code.dump, *code.dump).first;
  const auto offset = details->second.unwinding(code.load);
  const auto record = offset ? code.dump->record_at(*offset) : std::nullopt;
  const auto unwinding = record ? decode_unwinding(*record) : std::nullopt;
  const auto load_record = code.dump->record_at(code.load);
  const auto load = load_record ? decode_load(*load_record) : std::nullopt;
  if (!unwinding || !load || unwinding->eh_frame.empty()) return {};
  const Address end = load->range.begin + load->range.size;
  Target target = target_of(code.dump->header());
  target.machine = machine;
  return {std::make_unique<const CfiTable>(unwinding->eh_frame, (end + 7) & ~Address{7}, target),
          load->range,
          {}};
}

}  // namespace perfmap
