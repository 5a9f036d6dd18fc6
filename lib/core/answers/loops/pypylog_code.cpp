#include "perfmap/pypylog_code.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "answers/loops/loop_images.hpp"
#include "answers/loops/loop_lines.hpp"
#include "perfmap/jitdump_encode.hpp"
#include "perfmap/jitdump_writer.hpp"

namespace perfmap {
namespace {

/// By the "BACKEND x86_64" before the first piece of code; without one, this machine's.
std::uint32_t machine_of(const CompiledLoops& loops, std::string_view log) noexcept {
  constexpr std::uint64_t kFarthest = 4096;
  constexpr std::array kMachines = {
      std::pair{std::string_view("x86_64"), 62},   std::pair{std::string_view("x86"), 3},
      std::pair{std::string_view("aarch64"), 183}, std::pair{std::string_view("arm"), 40},
      std::pair{std::string_view("ppc64le"), 21},  std::pair{std::string_view("ppc"), 21},
      std::pair{std::string_view("s390x"), 22}};
  if (loops.code_bytes().empty()) return host_elf_machine();
  const std::uint64_t end = std::min<std::uint64_t>(loops.code_bytes()[0].hex.offset, log.size());
  const std::string_view before = log.substr(end - std::min(end, kFarthest), kFarthest);
  const std::size_t found = before.rfind("BACKEND ");
  if (found == std::string_view::npos) return host_elf_machine();
  for (const auto& [name, machine] : kMachines) {
    if (before.substr(found + 8).starts_with(name)) return static_cast<std::uint32_t>(machine);
  }
  return host_elf_machine();
}

std::uint64_t time_of(const CompiledLoop& loop, const LoopDumpOptions& options) noexcept {
  if (!options.conversion) return 0;
  const bool decimal = options.base == TickBase::dec;
  return options.conversion->to_ns(decimal ? loop.compiled.dec : loop.compiled.hex);
}

/// Writes the records of one loop after the other.
class LoopDumper {
 public:
  LoopDumper(const CompiledLoops& loops, std::string_view log, const LoopDumpOptions& options)
      : loops_(loops),
        log_(log),
        options_(options),
        order_(placed_loops(loops.all())),
        images_(loops, order_) {}

  bool write(DumpBytes& dump) {
    JitdumpEncoder encoder(dump.bytes);
    encoder.header({.elf_mach = machine_of(loops_, log_), .pid = options_.pid});
    for (const std::uint32_t number : order_) {
      if (!write(number, encoder, dump)) return false;
    }
    return true;
  }

 private:
  bool write(std::uint32_t number, JitdumpEncoder& encoder, DumpBytes& dump) {
    const CompiledLoop& loop = loops_.all()[number];
    if (!write_lines(loop, encoder) || !take_code(loop, number, dump)) return false;
    LoadRecord load;
    load.range = loop.code;
    load.pid = load.tid = options_.pid;
    load.vma = loop.code.begin;
    load.code_size = loop.code.size;
    load.code_index = std::uint64_t{number} + 1;
    load.name = loop.name;
    load.code = code_;
    return encoder.load(time_of(loop, options_), load);
  }

  /// Code that nobody knows is zeros, as far as those are few.
  bool take_code(const CompiledLoop& loop, std::uint32_t number, DumpBytes& dump) {
    code_.clear();
    const bool has_code = loop.code.size <= JitdumpWriter::kMostZeros || images_.has(number);
    const std::uint64_t size = has_code && !options_.bare ? loop.code.size : 0;
    if (size > DumpBytes::kMostBytes) return false;
    if (dump.bytes.size() + size + loop.name.size() >= DumpBytes::kMostBytes) return false;
    if (options_.bare) return true;
    const bool is_whole = size != 0 && images_.append(loop, number, log_, code_);
    dump.without_code += is_whole ? 0 : 1;
    return true;
  }

  bool write_lines(const CompiledLoop& loop, JitdumpEncoder& encoder) const {
    if (options_.bare) return true;
    const std::vector<LineRecord> lines = lines_of(loop, log_);
    if (lines.empty()) return true;
    std::uint64_t size = DebugInfoRecord::kFixed;
    for (const LineRecord& line : lines) size += DebugInfoRecord::kSmallestLine + line.file.size();
    constexpr std::string_view kZeros("\0\0\0\0\0\0\0", 7);
    return encoder.debug_info(time_of(loop, options_), loop.code.begin, lines,
                              kZeros.substr(0, jitdump_padding(size)));
  }

  const CompiledLoops& loops_;
  std::string_view log_;
  const LoopDumpOptions& options_;
  std::vector<std::uint32_t> order_;
  LoopImages images_;
  std::string code_;
};

}  // namespace

Result<DumpBytes> dump_of_loops(const CompiledLoops& loops, std::string_view log,
                                const LoopDumpOptions& options) {
  DumpBytes dump;
  if (LoopDumper(loops, log, options).write(dump)) return dump;
  return Failure({Errc::too_large, "its code makes a jitdump of more than 1 GiB", 0, {}});
}

Result<MapText> map_of_loops(const CompiledLoops& loops) {
  Diagnostics problems(1);
  Result<DumpBytes> bare = dump_of_loops(loops, {}, {.bare = true});
  if (!bare) return Failure(std::move(bare.error()));
  return map_text_at(Timeline(Jitdump(Input::from_text(std::move(bare->bytes), "")), problems));
}

}  // namespace perfmap
