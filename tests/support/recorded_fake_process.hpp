// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "perfmap/profile/doctor.hpp"
#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/planted_process.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test {

/// A recording of process 42, started by perf, for diagnose_recording(). Two of its frames are in
/// memory that may be JIT code. Files are searched below a separate directory, where process 42
/// still runs if `lives`.
class RecordedFakeProcess {
 public:
  static constexpr Address kCode = 0x7000000;

  RecordedFakeProcess() {
    std::filesystem::create_directories(tmp());
    std::filesystem::create_directories(planted.scratch() / "proc");
  }

  std::vector<std::string> command = {"/usr/bin/perf", "record", "-g", "--", "node", "a.js"};
  std::string program = "/usr/bin/node";
  std::string below = {};         ///< executable memory that is mapped before the program
  std::string comm = "node";      ///< empty: no event with its name
  std::string memory = "//anon";  ///< of the code
  std::uint32_t access = 5;       ///< of the code: PROT_…
  std::string hostname = {};
  std::uint64_t sample_type = kIp | kTid | kTime | kCallchain;
  std::vector<std::string> mapped = {};  ///< dumps that the process has mapped
  std::uint64_t lost = 0;
  std::uint64_t pid_namespace = 0;
  std::uint32_t clock = 0;
  bool lives = false;
  /// The process that executed the program, mapped the memory, and then forked process 42; 0: 42
  /// itself.
  pid_t parent = 0;
  Address caller = kCode + 0x20;  ///< in the sample's callchain
  bool remaps = false;            ///< 42 maps other memory over its parent's code
  bool any_owner = false;
  uid_t reader = 0;
  std::string map_dir = {};
  RecordedRefusals refused = {};  ///< what was refused before
  std::vector<MissingFile> missing = {};
  ProcessTracker::OpenModule open_module = {};
  PlantedProcess planted;

  std::string tmp() const { return planted.scratch() / "tmp"; }
  std::string map() const { return tmp() + "/perf-42.map"; }
  static std::string write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  RecordingDiagnosis diagnose() const {
    if (!lives) planted.vanish();
    const Recording recording = recording_of(bytes());
    RecordedJitOptions jit;
    jit.roots = {planted.scratch() / "proc", tmp()};
    jit.any_owner = any_owner;
    jit.directory = map_dir;
    refused_now_ = refused;
    RecordingDoctorOptions options;
    options.roots = jit.roots;
    options.map_dir = map_dir;
    options.any_owner = any_owner;
    options.reader = reader;
    options.refused = &refused_now_;
    options.missing = missing;
    options.open_module = open_module;
    options.find_jit = find_recorded_jit(recording, std::move(jit), refused_now_);
    Diagnostics problems(1);
    return diagnose_recording(recording, options, problems);
  }

 private:
  mutable RecordedRefusals refused_now_;
  std::uint32_t first() const { return parent != 0 ? static_cast<std::uint32_t>(parent) : 42; }
  std::string record(std::uint32_t type, const Bytes& body, std::uint16_t misc = 0) const {
    const RecordingBytes b;
    return b.record(type, body.text() + b.trailer(event(), {.time = 10, .pid = 42, .tid = 42}),
                    misc);
  }
  EventShape event() const {
    EventShape shape;
    shape.sample_type = sample_type;
    if (clock != 0) {
      shape.flags |= std::uint64_t{1} << 25;  // use_clockid
      shape.clock = clock;
    }
    if ((sample_type & kStackUser) != 0) shape.stack_user = 8192;
    return shape;
  }
  std::string mapping(const std::string& name, Address begin, std::uint32_t pid,
                      std::uint32_t granted = 5) const {
    Bytes body = RecordingBytes().bytes();
    body.u32(pid).u32(pid).u64(begin).u64(0x1000).u64(0).zeros(24).u32(granted).u32(2).padded(name);
    return record(10, body, 2);
  }
  std::string bytes() const {
    const RecordingBytes b;
    constexpr std::uint16_t kExec = 1 << 13;
    std::string data;
    if (!comm.empty()) {
      data += record(3, b.bytes().u32(first()).u32(first()).padded(comm), kExec);
    }
    if (!below.empty()) data += mapping(below, 0x200000, first());
    data += mapping(program, 0x400000, first()) + mapping(memory, kCode, first(), access);
    for (const std::string& one : mapped) data += mapping(one, 0x9000, first());
    if (parent != 0) {
      data += record(7, b.bytes().u32(42).u32(first()).u32(42).u32(first()).u64(10));
    }
    if (remaps) data += mapping("/memfd:code", kCode, 42);
    if (pid_namespace != 0) {
      Bytes body = b.bytes();
      body.u32(42).u32(42).u64(4);
      for (unsigned i = 0; i < 4; ++i) body.u64(4).u64(i == 3 ? pid_namespace : i);
      data += record(16, body);
    }
    if (lost != 0) data += record(2, b.bytes().u64(0).u64(lost));
    constexpr std::uint64_t kUser = static_cast<std::uint64_t>(-512);
    data += b.sample(event(), {.ip = kCode + 8,
                               .time = 20,
                               .pid = 42,
                               .tid = 42,
                               .callchain = {kUser, kCode + 8, caller}});
    RecordingBytes::Parts parts;
    if (!hostname.empty()) parts.features[3] = b.bytes().string(hostname).text();
    parts.features[6] = b.bytes().string("x86_64").text();
    if (!command.empty()) {
      Bytes words = b.bytes();
      words.u32(command.size());
      for (const std::string& word : command) words.string(word);
      parts.features[11] = words.text();
    }
    return b.file({event()}, data, parts);
  }
};

inline const RecordingFinding* find_finding(const RecordingDiagnosis& diagnosis,
                                            std::string_view id) {
  const auto found =
      std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [&](const RecordingFinding& one) { return one.finding.id == id; });
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

inline std::vector<std::string> ids_of(const RecordingDiagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const RecordingFinding& one : diagnosis.findings) ids.emplace_back(one.finding.id);
  return ids;
}

}  // namespace perfmap::test
