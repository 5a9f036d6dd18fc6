// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::test {

/// A record's fields, with a copy of its bytes.
struct Seen {
  JitRecordKind kind;
  std::uint64_t time;
  std::uint64_t index;
  std::uint32_t tid;
  std::string name;
  std::string code;
};

struct Contents {
  std::optional<JitdumpHeader> header;
  std::vector<Seen> records;
  std::uint64_t lost = 0;

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Seen& seen : records) {
      if (seen.kind == JitRecordKind::load) all.push_back(seen.name);
    }
    return all;
  }
};

inline Contents contents_of(const std::string& path) {
  Contents contents;
  const Jitdump dump(Input::from_text(read_file(path), path));
  contents.header = dump.header();
  Diagnostics problems(0);
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(problems)) {
    Seen seen{static_cast<JitRecordKind>(record->id), record->time, 0, 0, {}, {}};
    if (const auto load = decode_load(*record)) {
      seen.index = load->code_index;
      seen.tid = load->tid;
      seen.name = load->name;
      seen.code = load->code;
      CHECK(load->padding.empty());
    }
    contents.records.push_back(seen);
  }
  contents.lost = reader.lost_bytes();
  return contents;
}

inline std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// Options for a dump that belongs to no running process.
inline JitdumpOptions quiet() { return {.pid = 42, .marker = false, .close_record = false}; }

inline std::string name_of(int writer, int entry) {
  return "entry " + std::to_string(entry) + " of writer " + std::to_string(writer);
}
inline const std::string kCode(48, '\xc3');
inline JitFunction function_of(std::string_view name) {
  return {.start = 0x1000, .size = kCode.size(), .name = name, .code = kCode};
}

}  // namespace perfmap::test
