// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <dwarf.h>
#include <utility>

#include "dwarf/dwarf_file.hpp"
#include "dwarf/units.hpp"

namespace perfmap {

namespace {

constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 20;

/// Directories and files up to DWARF 4: lists that end with an empty name.
void read_old_names(DwarfCursor& cursor, LineNames& names) {
  names.directories.push_back({});  // the compiler's working directory
  while (cursor.ok() && names.directories.size() < kMaxEntries) {
    const std::string_view directory = cursor.c_string();
    if (directory.empty()) break;
    names.directories.push_back({{ValueKind::text, 0, directory}});
  }
  names.files.push_back({});  // files are numbered from 1
  while (cursor.ok() && names.files.size() < kMaxEntries) {
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

/// Directories or files of DWARF 5. Each entry takes at least one byte, which bounds their number.
std::vector<LineFile> read_entries(DwarfCursor& cursor, const DwarfUnit& forms) {
  const EntryFormat format = read_entry_format(cursor);
  const std::uint64_t count = cursor.uleb();
  if (count > cursor.left() || count > kMaxEntries) cursor.fail();
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

/// Reads the header at `offset` of .debug_line, versions 2 to 5. Borrows the section.
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
  if (names.version >= 4) cursor.u8();  // operations per instruction: 1 except on VLIW machines
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

constexpr std::size_t kUsualPath = 128;

/// Runs the opcodes (DWARF 5, 6.2.5) from `at` on, and passes the results to the sink.
template <class Sink>
class LineMachine {
 public:
  LineMachine(const LineHeader& header, std::endian order, std::uint64_t at, Sink& sink)
      : header_(header), sink_(sink), order_(order), cursor_(header.program, order, at) {}

  void run() {
    while (!cursor_.at_end() && cursor_.ok() && !sink_.is_done()) {
      sink_.run_ahead(header_, cursor_, row_);
      if (!cursor_.at_end() && !sink_.is_done()) step(cursor_.u8());
    }
  }

 private:
  void step(std::uint8_t opcode) {
    if (opcode >= header_.opcode_base) return special(opcode);
    if (opcode == 0) return extended();
    switch (opcode) {
      case DW_LNS_copy: return sink_.emit(row_);
      case DW_LNS_advance_pc: return advance(cursor_.uleb());
      case DW_LNS_advance_line: return add_lines(cursor_.sleb());
      case DW_LNS_set_file: row_.file = narrow(cursor_.uleb()); return;
      case DW_LNS_set_column: row_.column = narrow(cursor_.uleb()); return;
      case DW_LNS_const_add_pc:
        if (header_.line_range == 0) return cursor_.fail();
        row_.address += header_.steps[255].bytes;
        return;
      case DW_LNS_fixed_advance_pc: row_.address += cursor_.u16(); return;
      default: skip_operands(opcode);
    }
  }
  void special(std::uint8_t opcode) {
    if (header_.line_range == 0) return cursor_.fail();
    row_.address += header_.steps[opcode].bytes;
    add_lines(header_.steps[opcode].lines);
    sink_.emit(row_);
  }
  void extended() {
    const std::uint64_t length = cursor_.uleb();
    DwarfCursor operands(cursor_.bytes(length), order_);
    switch (operands.u8()) {
      case DW_LNE_end_sequence:
        sink_.end_sequence(row_.address, cursor_.position());
        row_ = kInitial;
        return;
      case DW_LNE_set_address:
        row_.address =
            operands.sized(static_cast<unsigned>(std::min<std::uint64_t>(length, 9) - 1));
        return;
      case DW_LNE_define_file: {
        const std::string_view name = operands.c_string();
        sink_.define_file({{ValueKind::text, 0, name}, operands.uleb()});
        return;
      }
      default: return;
    }
  }
  void skip_operands(std::uint8_t opcode) {
    const auto count = static_cast<unsigned char>(header_.operand_counts[opcode - 1U]);
    for (unsigned i = 0; i < count; ++i) cursor_.uleb();
  }
  void advance(std::uint64_t operations) { row_.address += operations * header_.minimum_length; }
  void add_lines(std::int64_t lines) { row_.line += static_cast<std::uint32_t>(lines); }
  static std::uint32_t narrow(std::uint64_t number) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
  }

  static constexpr LineRow kInitial{0, 1, 1, 0};

  const LineHeader& header_;
  Sink& sink_;
  std::endian order_;
  DwarfCursor cursor_;
  LineRow row_ = kInitial;
};

}  // namespace

/// Finds the sequences without storing their rows.
class LineRows::Survey {
 public:
  Survey(LineRows& out, const DwarfFile& file, std::uint64_t max_rows)
      : out_(out), file_(file), max_rows_(max_rows) {}

  bool is_done() const noexcept { return out_.row_count_ + now_.count >= max_rows_; }
  void emit(const LineRow& row) noexcept {
    if (now_.count++ == 0) now_.begin = last_ = row.address;
    now_.is_sorted = now_.is_sorted && row.address >= last_;
    now_.begin = std::min(now_.begin, row.address);
    last_ = row.address;
  }
  void end_sequence(std::uint64_t end, std::uint64_t next) {
    now_.end = end;
    if (now_.count != 0 && now_.begin < end && file_.is_code(now_.begin)) {
      out_.sequences_.push_back(now_);
      out_.row_count_ += now_.count;
    }
    now_ = {};
    now_.program = next;
  }
  void define_file(const LineFile& file) { out_.names_.files.push_back(file); }
  /// Handles runs of the usual opcodes at a fraction of the cost: only addresses matter here, and
  /// these opcodes only increase them.
  void run_ahead(const LineHeader& header, DwarfCursor& cursor, LineRow& row) noexcept {
    constexpr std::ptrdiff_t kLongest = 3;
    if (!header.is_usual || row.address >> 63 != 0) return;
    const std::string_view rest = cursor.rest();
    const auto* at = reinterpret_cast<const unsigned char*>(rest.data());
    const unsigned char* const end = at + rest.size();
    const std::uint64_t max = max_rows_ - out_.row_count_ - now_.count;
    std::uint64_t address = row.address;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t count = 0;
    while (end - at >= kLongest && count < max) {
      const unsigned opcode = *at;
      if (opcode >= header.opcode_base || opcode == DW_LNS_copy) {
        address += header.steps[opcode].bytes;  // 0 for DW_LNS_copy
        if (count++ == 0) first = address;
        last = address;
        ++at;
        continue;
      }
      const unsigned char* const next = after_usual(at, end);
      if (next == nullptr) break;
      if (opcode == DW_LNS_advance_pc) {
        address += (next - at == 2 ? at[1] : (at[1] & 0x7fU) | unsigned{at[2]} << 7) *
                   std::uint64_t{header.minimum_length};
      }
      at = next;
    }
    cursor.skip(static_cast<std::uint64_t>(reinterpret_cast<const char*>(at) - rest.data()));
    row.address = address;
    if (count != 0) add_rising(first, last, count);
  }

 private:
  void add_rising(std::uint64_t first, std::uint64_t last, std::uint64_t count) noexcept {
    if (now_.count == 0) now_.begin = last_ = first;
    now_.is_sorted = now_.is_sorted && first >= last_;
    now_.begin = std::min(now_.begin, first);
    now_.count += count;
    last_ = last;
  }
  /// The end of an opcode that makes no row and has at most an operand of one or two bytes; else
  /// null.
  static const unsigned char* after_usual(const unsigned char* at,
                                          const unsigned char* end) noexcept {
    switch (*at) {
      case DW_LNS_negate_stmt:
      case DW_LNS_set_basic_block: return at + 1;
      case DW_LNS_advance_pc:
      case DW_LNS_advance_line:
      case DW_LNS_set_file:
      case DW_LNS_set_column:
        if (at[1] < 0x80) return at + 2;
        return at[2] < 0x80 ? at + 3 : nullptr;
      case 0:
        if (at[2] != DW_LNE_set_discriminator || at[1] == 0) return nullptr;
        return at[1] <= end - at - 2 ? at + 2 + at[1] : nullptr;
      default: return nullptr;
    }
  }

  LineRows& out_;
  const DwarfFile& file_;
  std::uint64_t max_rows_;
  Sequence now_;
  std::uint64_t last_ = 0;
};

/// Builds the rows of one sequence, at most as many as were counted, because the file may have
/// changed.
class LineRows::Maker {
 public:
  explicit Maker(const Sequence& of) : max_(of.count) { rows_.reserve(of.count); }

  bool is_done() const noexcept { return has_ended_; }
  void emit(const LineRow& row) {
    if (rows_.size() < max_) rows_.push_back(row);
  }
  void end_sequence(std::uint64_t /*end*/, std::uint64_t /*next*/) noexcept { has_ended_ = true; }
  void define_file(const LineFile& /*file*/) noexcept {}
  void run_ahead(const LineHeader& /*header*/, DwarfCursor& /*cursor*/, LineRow& /*row*/) noexcept {
  }
  Rows take() && { return std::move(rows_); }

 private:
  std::size_t max_;
  Rows rows_;
  bool has_ended_ = false;
};

LineRows::LineRows(const UnitContext& context, std::string_view compile_directory,
                   std::uint64_t offset, std::uint64_t max_bytes)
    : order_(context.file->order()) {
  names_.compile_directory = compile_directory;
  header_ = read_line_header(context, offset, names_);
  if (!header_.ok) return;
  Survey survey(*this, *context.file, max_bytes / sizeof(LineRow));
  LineMachine(header_, order_, 0, survey).run();
  std::ranges::sort(sequences_, {}, &Sequence::end);
  sequences_.shrink_to_fit();
  made_ = std::make_unique<Made[]>(sequences_.size());
}

const LineRows::Rows& LineRows::rows_of(std::size_t number) const {
  std::atomic<const Rows*>& made = made_[number].rows;
  if (const Rows* const known = made.load(std::memory_order_acquire)) return *known;
  const Sequence& sequence = sequences_[number];
  Maker maker(sequence);
  LineMachine(header_, order_, sequence.program, maker).run();
  auto rows = std::make_unique<Rows>(std::move(maker).take());
  if (!sequence.is_sorted) std::ranges::stable_sort(*rows, {}, &LineRow::address);
  const Rows* expected = nullptr;
  if (!made.compare_exchange_strong(expected, rows.get(), std::memory_order_acq_rel)) {
    return *expected;
  }
  return *rows.release();
}

const LineRow* LineRows::find(std::uint64_t address) const {
  const auto sequence = std::ranges::upper_bound(sequences_, address, {}, &Sequence::end);
  if (sequence == sequences_.end() || address < sequence->begin) return nullptr;
  const Rows& rows = rows_of(static_cast<std::size_t>(sequence - sequences_.begin()));
  const auto after = std::ranges::upper_bound(rows, address, {}, &LineRow::address);
  return after == rows.begin() ? nullptr : &*(after - 1);
}

std::size_t LineRows::bytes() const noexcept {
  return row_count_ * sizeof(LineRow) +
         sequences_.capacity() * (sizeof(Sequence) + sizeof(Made) + sizeof(Rows)) +
         (names_.files.capacity() + names_.directories.capacity()) * sizeof(LineFile);
}

std::string LineNames::path(const UnitContext& context, std::uint64_t file) const {
  if (file >= files.size()) return {};
  const LineFile& found = files[file];
  std::string made;
  made.reserve(kUsualPath);
  const auto append = [&](std::string_view part) {
    if (part.empty()) return;
    if (part.front() == '/') made.clear();
    if (!made.empty() && made.back() != '/') made += '/';
    made += part;
  };
  const std::string_view name = text_of(context, found.name);
  if (name.empty()) return {};
  append(compile_directory);
  if (found.directory < directories.size()) {
    append(text_of(context, directories[found.directory].name));
  }
  append(name);
  return made;
}

}  // namespace perfmap
