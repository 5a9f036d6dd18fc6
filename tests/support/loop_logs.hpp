// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "perfmap/pypylog.hpp"
#include "support/catch.hpp"

namespace perfmap::test {

using Options = LoopProfile::Options;

/// An enter event in the format that PyPy's documentation describes.
inline std::string event(const std::string& kind, unsigned tick, const std::string& name,
                         const std::string& prefix = "") {
  const std::string category = "jit-profile-" + kind;
  return prefix + "[" + std::to_string(tick) + "] {" + category + "\n" + prefix + name + "\n" +
         prefix + "[" + std::to_string(tick + 1) + "] " + category + "}\n";
}
inline std::string enter(unsigned tick, const std::string& name, const std::string& prefix = "") {
  return event("enter", tick, name, prefix);
}
inline std::string leave(unsigned tick, const std::string& name, const std::string& prefix = "") {
  return event("exit", tick, name, prefix);
}

inline const std::string kSketch =
    "[100] {jit-profile-enter\n"
    "loop1      # e.g. an entry bridge\n"
    "[101] jit-profile-enter}\n"
    "[200] {jit-profile-enter\n"
    "loop0      # JUMP from loop1 to loop0\n"
    "[201] jit-profile-enter}\n"
    "[500] {jit-profile-exit\n"
    "loop0      # e.g. because of a failing guard\n"
    "[501] jit-profile-exit}\n";

/// Two loops, a bridge that jumps back to its own loop, and one that jumps to the other loop.
inline const std::string kCompiled =
    "[1] {jit-log-opt-loop\n"
    "# Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER) : loop with 4 ops\n"
    "+10: label(p0, descr=TargetToken(111))\n"
    "+20: guard_true(i1, descr=<Guard0xa1>) [p0]\n"
    "+30: guard_false(i2, descr=<Guard0xa2>) [p0]\n"
    "+40: jump(p0, descr=TargetToken(111))\n"
    "[2] jit-log-opt-loop}\n"
    "[3] {jit-log-opt-loop\n"
    "# Loop 2 (g;/tmp/t.py:20-21~#2 FOR_ITER) : loop with 1 ops\n"
    "+10: label(p0, descr=TargetToken(222))\n"
    "+20: jump(p0, descr=TargetToken(222))\n"
    "[4] jit-log-opt-loop}\n"
    "[5] {jit-log-opt-bridge\n"
    "# bridge out of Guard 0xa1 with 1 ops\n"
    "+10: jump(p0, descr=TargetToken(111))\n"
    "[6] jit-log-opt-bridge}\n"
    "[7] {jit-log-opt-bridge\n"
    "# bridge out of Guard 0xa2 with 1 ops\n"
    "+10: jump(p0, descr=TargetToken(222))\n"
    "[8] jit-log-opt-bridge}\n";

inline LoopProfile profile_of(const std::string& log, Options options = {}) {
  LoopProfile profile(std::move(options));
  profile.add(log);
  profile.finish();
  return profile;
}

/// Ticks by loop name, with "" for the time outside loops. Loops without time are left out.
inline std::map<std::string, std::uint64_t> ticks_of(const LoopProfile& profile) {
  std::map<std::string, std::uint64_t> ticks{{"", profile.outside()}};
  for (std::size_t i = 0; i < profile.times().size(); ++i) {
    if (profile.times()[i].ticks != 0)
      ticks[profile.loops().all()[i].name] += profile.times()[i].ticks;
  }
  return ticks;
}

inline std::uint64_t entered(const LoopProfile& profile, const std::string& name) {
  return profile.times()[profile.loops().find(name)].entered;
}

inline std::uint64_t category(const LoopProfile& profile, const std::string& name) {
  for (const LoopProfile::Category& one : profile.categories()) {
    if (one.name == name) return one.ticks;
  }
  FAIL("no category " << name);
  return 0;
}

using Ticks = std::map<std::string, std::uint64_t>;

}  // namespace perfmap::test
