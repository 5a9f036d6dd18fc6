// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmap/profile/annotate.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// What is known of code from its frames.
struct FoundCode {
  const FrameMapping& mapping;   ///< of a function of an ELF file
  std::string_view system_name;  ///< of JIT code: as its source has it
  std::uint64_t record = 0;      ///< see FramePlace
};

/// By dump, LOAD and new address: the first time at which the code was moved there. Of the dumps
/// with a version that was moved.
using MoveTimes =
    std::map<const Timeline*, std::map<std::pair<std::uint64_t, Address>, std::uint64_t>>;

/// Finds the bytes, lines and times of code in the files that a StackReader opened. One thread at a
/// time.
class CodeFinder {
 public:
  /// Keeps no reference: the cache of modules may remove it.
  void add_module(const Region& region, const std::shared_ptr<const Module>& module);
  /// Keeps the module of that mapping from now on.
  void keep_module(const FrameMapping& mapping);
  void add_sources(const std::shared_ptr<JitSources>& sources);

  /// Sets the version's code, or why there is none, its size, span and lines. Its name, module,
  /// kind, samples and the beginning of its range are set.
  void find(const FoundCode& code, const Recording& recording, bool lines,
            CodeVersion& version) const;

 private:
  using FileKey = std::pair<std::string, std::string>;  // path and build-id

  void find_native(const FoundCode& code, bool lines, CodeVersion& version) const;
  void find_jit(const FoundCode& code, const Recording& recording, bool lines,
                CodeVersion& version) const;
  bool find_in_dumps(JitSources& sources, const FoundCode& code, const Recording& recording,
                     bool lines, CodeVersion& version) const;
  static bool find_in_maps(const JitSources& sources, const FoundCode& code, CodeVersion& version);

  std::map<FileKey, std::weak_ptr<const Module>> modules_;
  std::map<FileKey, std::shared_ptr<const Module>> kept_;
  std::vector<std::shared_ptr<JitSources>> sources_;
  mutable MoveTimes moves_;
};

}  // namespace perfmap
