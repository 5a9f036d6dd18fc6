#include <algorithm>

#include "perfmap/dump_merge.hpp"
#include "perfmap/jitdump_encode.hpp"
#include "perfmap/jitdump_writer.hpp"

namespace perfmap {
Result<DumpBytes> dump_of_map(const Map& map, std::uint32_t pid, Diagnostics& problems) {
  DumpBytes dump;
  JitdumpEncoder encoder(dump.bytes);
  encoder.header({.elf_mach = host_elf_machine(), .pid = pid});
  std::string zeros;
  bool fits = true;
  map.for_each(problems, [&](const Entry& entry) {
    if (!fits) return;
    const std::uint64_t size = map.written_size(entry);
    const std::uint64_t code = size <= JitdumpWriter::kMostZeros ? size : 0;
    fits = dump.bytes.size() + code + entry.name.size() < DumpBytes::kMostBytes;
    if (!fits) return;
    zeros.resize(std::max<std::size_t>(zeros.size(), code));
    LoadRecord load;
    load.range = {entry.range.begin, 0};
    load.pid = load.tid = pid;
    load.vma = entry.range.begin;
    load.code_size = size;
    load.code_index = ++dump.without_code;
    load.name = entry.name;
    load.code = std::string_view(zeros).substr(0, code);
    fits = encoder.load(0, load);
  });
  if (fits) return dump;
  return Failure({Errc::too_large,
                  map.input().name() + " makes a jitdump of more than 1 GiB, most of it zeros",
                  0,
                  {}});
}

}  // namespace perfmap
