#include "modules/line_header.hpp"

#include <algorithm>
#include <dwarf.h>
#include <utility>

#include "modules/dwarf_file.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 20;

/// Directories and files up to DWARF 4: lists that end with an empty name.
void read_old_names(DwarfCursor& cursor, LineNames& names) {
  names.directories.push_back({});  // the compiler's working directory
  while (cursor.ok() && names.directories.size() < kMostEntries) {
    const std::string_view directory = cursor.c_string();
    if (directory.empty()) break;
    names.directories.push_back({{ValueKind::text, 0, directory}});
  }
  names.files.push_back({});  // files count from 1
  while (cursor.ok() && names.files.size() < kMostEntries) {
    const std::string_view file = cursor.c_string();
    if (file.empty()) break;
    names.files.push_back({{ValueKind::text, 0, file}, cursor.uleb()});
    cursor.uleb();  // time
    cursor.uleb();  // size
  }
}

using EntryFormat = std::vector<std::pair<std::uint64_t, std::uint16_t>>;

EntryFormat read_entry_format(DwarfCursor& cursor) {
  EntryFormat format(cursor.u8());
  for (auto& [content, form] : format) {
    content = cursor.uleb();
    const std::uint64_t number = cursor.uleb();
    if (number > 0xffff || number == DW_FORM_implicit_const) cursor.fail();
    form = static_cast<std::uint16_t>(number);
  }
  return format;
}

/// Directories or files of DWARF 5; each entry takes a byte at least, whatever their number.
std::vector<LineFile> read_entries(DwarfCursor& cursor, const DwarfUnit& forms) {
  const EntryFormat format = read_entry_format(cursor);
  const std::uint64_t count = cursor.uleb();
  if (count > cursor.left() || count > kMostEntries) cursor.fail();
  std::vector<LineFile> entries;
  for (std::uint64_t i = 0; i < count && cursor.ok(); ++i) {
    const std::uint64_t before = cursor.position();
    LineFile& entry = entries.emplace_back();
    for (const auto& [content, form] : format) {
      const DwarfValue value = read_value(cursor, forms, {0, form, 0});
      if (content == DW_LNCT_path) entry.name = value;
      if (content == DW_LNCT_directory_index) entry.directory = value.number;
    }
    if (cursor.position() == before) cursor.fail();
  }
  return entries;
}

void make_steps(LineHeader& header) noexcept {
  constexpr std::string_view kOperands("\0\1\1\1\1\0\0", DW_LNS_set_basic_block);
  header.is_usual = header.operand_counts.starts_with(kOperands) && header.line_range != 0;
  const unsigned range = std::max<unsigned>(header.line_range, 1);
  for (unsigned opcode = header.opcode_base; opcode < header.steps.size(); ++opcode) {
    const unsigned adjusted = opcode - header.opcode_base;
    header.steps[opcode] = {adjusted / range * header.minimum_length,
                            header.line_base + static_cast<int>(adjusted % range)};
  }
}

}  // namespace

LineHeader read_line_header(const UnitContext& context, std::uint64_t offset, LineNames& names) {
  const std::string_view section = context.file->sections().line;
  DwarfCursor cursor(section, context.file->order(), offset);
  const DwarfCursor::Length length = cursor.unit_length();
  if (length.bytes > cursor.left()) cursor.fail();
  const std::uint64_t end = cursor.position() + length.bytes;
  LineHeader header;
  DwarfUnit forms = *context.unit;
  forms.version = names.version = cursor.u16();
  forms.offset_size = length.offset_size;
  if (names.version >= 5) {
    forms.address_size = cursor.u8();
    cursor.u8();  // segment selectors
  }
  header.address_size = forms.address_size;
  const std::uint64_t header_length = cursor.sized(length.offset_size);
  if (!cursor.ok() || names.version < 2 || names.version > 5) return {};
  if (cursor.position() > end || header_length > end - cursor.position()) return {};
  const std::uint64_t program = cursor.position() + header_length;
  header.minimum_length = cursor.u8();
  if (names.version >= 4) cursor.u8();  // operations per instruction: 1 but for VLIW machines
  cursor.u8();                          // default_is_stmt
  header.line_base = static_cast<std::int8_t>(cursor.u8());
  header.line_range = cursor.u8();
  header.opcode_base = cursor.u8();
  header.operand_counts = cursor.bytes(header.opcode_base == 0 ? 0U : header.opcode_base - 1U);
  if (!cursor.ok() || header.opcode_base == 0) return {};
  DwarfCursor lists(section.substr(0, program), context.file->order(), cursor.position());
  if (names.version >= 5) {
    names.directories = read_entries(lists, forms);
    names.files = read_entries(lists, forms);
  } else {
    read_old_names(lists, names);
  }
  header.program = section.substr(program, end - program);
  make_steps(header);
  header.ok = true;
  return header;
}

}  // namespace perfmap
