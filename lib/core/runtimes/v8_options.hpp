// SPDX-License-Identifier: MIT
#pragma once

#include "runtimes/catalogue.hpp"

/// What Node.js and Deno share: both run V8, and give it its options in different ways.

namespace perfmap::runtimes::v8 {

inline constexpr std::string_view kMap = "--perf-basic-prof";
inline constexpr std::string_view kStackFlag = "--interpreted-frames-native-stack";
inline constexpr std::string_view kNamedCode =
    "JavaScript and WebAssembly functions, with file, line and tier; builtins";

/// V8 accepts '_' for '-' in the names of its options.
StartFlags flags_of(Words words);

/// The options that the process lacks to name its code.
inline Words missing_options(const RuntimeProcess& process) {
  Words words;
  if (process.flags.map_by.empty()) words.emplace_back(kMap);
  if (!process.flags.has_stack_flag) words.emplace_back(kStackFlag);
  return words;
}

constexpr RuntimeStacks stacks(StackFlags (*flags)(const RuntimeProcess& process)) {
  return {.flags = flags,
          .flag = kStackFlag,
          .finding = "interpreted-frames",
          .message = "functions that V8 interprets are all shown as InterpreterEntryTrampoline",
          .is_about_names = true};
}

}  // namespace perfmap::runtimes::v8
