// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "perfmap/profile/doctor.hpp"
#include "support/lint_findings.hpp"
#include "support/planted_process.hpp"

namespace perfmap::test {

/// A planted process of the user who runs the test, checked like `lint PID` does.
class LintedProcess {
 public:
  LintedProcess() { user(::geteuid()); }

  void user(uid_t uid, const std::string& pids = "42\t3", int parent = 7) const {
    const std::string id = std::to_string(uid);
    planted.put("status", "Name:\tnode\nTgid:\t42\nPPid:\t" + std::to_string(parent) + "\nUid:\t" +
                              id + "\t" + id + "\t" + id + "\t" + id + "\nNStgid:\t" + pids +
                              "\nNSpid:\t" + pids + "\n");
  }

  /// Each finding as "perf-3.map PM111 1:1", with "!" before findings about files that were not
  /// read.
  std::vector<std::string> findings() {
    std::vector<LintedFile> files;
    std::vector<std::unique_ptr<Map>> maps;
    std::vector<std::unique_ptr<Jitdump>> dumps;
    read = std::vector<Diagnostics>(8, Diagnostics(0));
    if (auto map = find_process_map(PlantedProcess::kPid, options.roots, options.any_owner)) {
      maps.push_back(std::make_unique<Map>(*std::move(map)));
      files.push_back({maps.back().get(), nullptr, &read[files.size()]});
    }
    for (Input& dump :
         find_process_dumps(PlantedProcess::kPid, options.roots, options.any_owner).dumps) {
      dumps.push_back(std::make_unique<Jitdump>(std::move(dump)));
      files.push_back({nullptr, dumps.back().get(), &read[files.size()]});
    }
    auto found = lint_process(PlantedProcess::kPid, files, Diagnostics(0), options);
    if (!found) return {found.error().message()};
    std::vector<std::string> all;
    for (std::size_t i = 0; i < files.size(); ++i) {
      add(i < maps.size() ? maps[i]->input().name() : dumps[i - maps.size()]->input().name(),
          read[i], "", all);
    }
    not_read = std::move(found->unread);
    for (const UnreadFile& file : not_read) add(file.path, file.problems, "!", all);
    return all;
  }

  PlantedProcess planted;
  ProcessLintOptions options{planted.roots(), false, {}};
  std::vector<Diagnostics> read;  ///< the source of findings()
  std::vector<UnreadFile> not_read;

 private:
  static void add(const std::string& path, const Diagnostics& found, const char* mark,
                  std::vector<std::string>& all) {
    for (const std::string& place : places_of(found)) {
      all.push_back(mark + path.substr(path.rfind('/') + 1) + " " + place);
    }
  }
};

}  // namespace perfmap::test
