// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "perfmap/profile/doctor.hpp"
#include "support/catch.hpp"
#include "support/planted_process.hpp"

namespace perfmap::test {

/// A planted process for diagnose(): pid 42, which sees itself as 3 below its own root, with /tmp
/// in the scratch directory on both sides. It has 16 pages at 0x10000 that may be JIT code.
class FakeProcess {
 public:
  FakeProcess() {
    std::filesystem::create_directories(options.roots.tmp);
    std::filesystem::create_directories(planted.path("root" + options.roots.tmp));
    maps("10000-20000 rwxp 00000000 00:00 0 \n");
    status("Tgid:\t42\nNStgid:\t42\t3\n");
  }

  /// The process's user: another user, or ours if we cannot create files for another one.
  static uid_t uid() { return PlantedProcess::uid(); }
  void status(const std::string& rest) const {
    planted.put("status", "Name:\tnode\nUid:\t0\t" + std::to_string(uid()) + "\t0\t0\n" + rest);
  }

  FakeProcess& program(const std::string& path, const std::vector<std::string>& arguments = {}) {
    std::filesystem::remove(planted.path("exe"));
    std::filesystem::create_symlink(path, planted.path("exe"));
    planted.put("cmdline", joined(arguments.empty() ? std::vector{path} : arguments));
    return *this;
  }
  FakeProcess& environment(const std::vector<std::string>& variables) {
    planted.put("environ", joined(variables));
    return *this;
  }
  FakeProcess& maps(const std::string& text) {
    planted.put("maps", text);
    return *this;
  }
  std::string inside(const std::string& name) const {
    return planted.path("root" + options.roots.tmp + "/" + name);
  }
  std::string outside(const std::string& name) const { return options.roots.tmp + "/" + name; }
  static std::string write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// The process shares our mounts, and only its pid differs.
  void share_mounts() const {
    for (const std::string& directory : {planted.path("ns"), planted.scratch() / "proc/self/ns"}) {
      std::filesystem::create_directories(directory);
      std::filesystem::create_symlink("mnt:[1]", directory + "/mnt");
    }
  }

  Diagnosis diagnose() const {
    Result<Diagnosis> diagnosis = perfmap::diagnose(PlantedProcess::kPid, options);
    REQUIRE(diagnosis);
    return *std::move(diagnosis);
  }

  PlantedProcess planted;
  DoctorOptions options{{planted.scratch() / "proc", planted.scratch() / "tmp"}, 0};

 private:
  static std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + '\0';
    return text;
  }
};

inline std::vector<std::string> ids_of(const Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const DoctorFinding& finding : diagnosis.findings) ids.emplace_back(finding.id);
  return ids;
}

inline DoctorFinding finding_of(const Diagnosis& diagnosis, std::string_view id) {
  for (const DoctorFinding& finding : diagnosis.findings) {
    if (finding.id == id) return finding;
  }
  return {};
}

inline std::vector<std::string> fates_of(const Diagnosis& diagnosis) {
  std::vector<std::string> fates;
  for (const LookedFor& file : diagnosis.looked_for) fates.emplace_back(to_string(file.fate));
  return fates;
}

inline std::string text_of(const Diagnosis& diagnosis, bool as_json) {
  const Scratch scratch;
  Result<OutputFile> out = OutputFile::replace(scratch / "out");
  REQUIRE(out);
  if (as_json) {
    write_doctor_json(*out, diagnosis);
  } else {
    write_doctor_text(*out, diagnosis);
  }
  REQUIRE(out->commit());
  return read_file(scratch / "out");
}

}  // namespace perfmap::test
