// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "perfmap/profile/inject.hpp"
#include "support/catch.hpp"
#include "support/elf_reader.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/recording_reading.hpp"
#include "support/scratch.hpp"
#include "support/written.hpp"

namespace perfmap::test {

/// A recording after inject_jit().
struct Injected {
  Scratch scratch;
  InjectReport report;
  std::string bytes;
  RecordingContents contents;

  Injected(const std::string& recording, std::vector<std::string> dumps, bool given = false,
           ProcessTracker::OpenModule open_module = {}) {
    InjectOptions options;
    options.open_module = std::move(open_module);
    options.elf_prefix = scratch / "out.";
    if (given) {
      for (std::string& dump : dumps) {
        options.dumps.push_back(dump_of(std::move(dump)));
      }
    }
    options.open_dump = [&](pid_t, std::uint64_t, const std::string& path) -> Result<RecordedDump> {
      if (dumps.empty()) return Failure(Error::not_found("no " + path));
      return RecordedDump{dump_of(dumps.front())};
    };
    const Recording opened = recording_of(recording);
    Diagnostics problems(0);
    bytes = written([&](OutputFile& out) {
      Result<InjectReport> made = inject_jit(opened, options, out, problems);
      REQUIRE(made);
      report = *std::move(made);
    });
    contents = read_all(bytes);
  }

  std::vector<MmapEvent> mappings() const {
    std::vector<MmapEvent> found;
    for (const RecordWithBytes& record : contents.records) {
      if (const auto event = decode_mmap(record.borrowed())) found.push_back(*event);
    }
    return found;
  }
  /// The function that perf would find at an address.
  std::string name_at(Address address, std::uint64_t time) const {
    const MmapEvent* in_force = nullptr;
    const std::vector<MmapEvent> all = mappings();
    for (const MmapEvent& event : all) {
      if (event.time <= time && event.range.contains(address)) in_force = &event;
    }
    if (in_force == nullptr) return "";
    const std::string file(in_force->name);
    if (!file.ends_with(".so")) return file;
    const ElfReader elf(read_file(file));
    const std::uint64_t offset = address - in_force->range.begin + in_force->offset;
    for (const ElfSymbol& symbol : elf.symbols()) {
      if (symbol.range.contains(offset)) return symbol.name;
    }
    return "";
  }
};

}  // namespace perfmap::test
