// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::test {

/// The contents of a dump that is read from start to end.
struct Reading {
  std::vector<JitRecord> records;  // of bytes of the dump
  std::vector<std::string> names;  // of LOADs
  std::vector<std::string> messages;
  std::vector<std::string> odd_sizes;  // rules that inconsistent sizes within records break
  std::uint64_t lost = 0;
};

inline Reading read(const Jitdump& dump) {
  Reading reading;
  Diagnostics problems(0);
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(problems)) {
    reading.records.push_back(*record);
    if (const auto load = decode_load(*record)) reading.names.emplace_back(load->name);
  }
  for (const Diagnostic& problem : problems.items()) {
    if (problem.rule->id != rule::kDamagedRecord.id) {
      reading.odd_sizes.emplace_back(problem.rule->id);
      continue;
    }
    reading.messages.push_back(std::to_string(problem.where.offset) + ": " + problem.message);
  }
  reading.lost = reader.lost_bytes();
  return reading;
}

}  // namespace perfmap::test
