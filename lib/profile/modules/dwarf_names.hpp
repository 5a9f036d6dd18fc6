#pragma once

#include <cstdint>

namespace perfmap {

/// The few names of DWARF that we use. Source: DWARF 4, section 7; DW_EH_PE_…: Linux Standard Base
/// 5.0, "DWARF Exception Header Encoding".
enum DwarfEncoding : std::uint8_t {
  DW_EH_PE_absptr = 0x00,
  DW_EH_PE_udata2 = 0x02,
  DW_EH_PE_udata4 = 0x03,
  DW_EH_PE_udata8 = 0x04,
  DW_EH_PE_sdata2 = 0x0a,
  DW_EH_PE_sdata4 = 0x0b,
  DW_EH_PE_sdata8 = 0x0c,
  DW_EH_PE_pcrel = 0x10,
  DW_EH_PE_indirect = 0x80,
};

enum DwarfTag : std::uint8_t { DW_TAG_compile_unit = 0x11, DW_TAG_subprogram = 0x2e };

enum DwarfAttribute : std::uint8_t {
  DW_AT_name = 0x03,
  DW_AT_stmt_list = 0x10,
  DW_AT_low_pc = 0x11,
  DW_AT_high_pc = 0x12,
  DW_AT_language = 0x13,
  DW_AT_producer = 0x25,
  DW_AT_ranges = 0x55,
};

enum DwarfForm : std::uint8_t {
  DW_FORM_addr = 0x01,
  DW_FORM_data4 = 0x06,
  DW_FORM_data8 = 0x07,
  DW_FORM_string = 0x08,
  DW_FORM_data1 = 0x0b,
  DW_FORM_strp = 0x0e,
  DW_FORM_sec_offset = 0x17,
};

enum DwarfLineOpcode : std::uint8_t {
  DW_LNE_end_sequence = 0x01,  // extended
  DW_LNE_set_address = 0x02,
  DW_LNS_copy = 0x01,  // standard
  DW_LNS_advance_pc = 0x02,
  DW_LNS_advance_line = 0x03,
  DW_LNS_set_file = 0x04,
  DW_LNS_set_column = 0x05,
};

inline constexpr std::uint8_t DW_LANG_C = 0x02;  // names are taken as they are

}  // namespace perfmap
