// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>

#include "perfmap/pypylog.hpp"
#include "support/catch.hpp"
#include "support/pypylog_oracle.hpp"

namespace perfmap::pypylog_property {
namespace {

using test::PlainProfile;

std::string pick(std::mt19937& random, std::initializer_list<const char*> of) {
  return std::data(of)[random() % of.size()];
}

/// A log with all kinds of lines: matching and unmatched sections, text, truncated lines, threads,
/// times that run backwards.
std::string random_log(std::mt19937& random, bool hex) {
  std::string log;
  std::uint64_t time = random() % 3 == 0 ? 0 : 0x9a3c81;
  const auto threads = random() % 3;
  const auto lines = random() % 60;
  for (unsigned long i = 0; i < lines; ++i) {
    if (threads != 0 && random() % 8 != 0) log += std::to_string(random() % threads) + "# ";
    time += random() % 40;
    if (random() % 16 == 0) time -= std::min<std::uint64_t>(time, random() % 60);
    char number[32];
    std::snprintf(number, sizeof number, hex ? "[%llx] " : "[%llu] ",
                  static_cast<unsigned long long>(time));
    const std::string category = pick(
        random, {"jit-profile-enter", "jit-profile-enter", "jit-profile-exit", "gc-minor", "a"});
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: log += number + ("{" + category); break;
      case 3:
      case 4: log += number + (category + "}"); break;
      case 5:
        log += pick(random, {"loop0", "loop1 # by a jump", "  l2", "# nothing", "", "x#y"});
        break;
      case 6:
        log += pick(random, {"[12", "[] {a", "[p0, p1]", "[1g] {a", "[12] {a b", "[5]  a}"});
        break;
      default: {
        const std::string end = pick(random, {"", "", "\r"});
        log += number + ("{" + category) + end + "\n" + pick(random, {"", "loop1\n", "l3 #\n"}) +
               number + (category + "}") + end;
      }
    }
    log += "\n";
  }
  return log;
}

/// Reads a log at once, or in blocks of whole lines.
LoopProfile profile_of(const std::string& log, std::mt19937& random, bool whole, TickBase base) {
  LoopProfile profile({.base = base});
  std::size_t at = 0;
  while (at < log.size()) {
    std::size_t end = whole ? log.size() : at + random() % 80;
    end = end >= log.size() ? log.size() : log.find('\n', end) + 1;
    profile.add(std::string_view(log).substr(at, end - at));
    at = end;
  }
  profile.finish();
  return profile;
}

void check_against(const LoopProfile& profile, const PlainProfile& plain) {
  std::uint64_t outside = 0;
  std::uint64_t rest = 0;
  std::uint64_t ticks = 0;
  for (const auto& [number, thread] : plain.threads) {
    outside += thread.outside;
    rest += thread.rest;
    ticks += thread.last - thread.first;
  }
  CHECK(profile.outside() == outside);
  CHECK(profile.rest() == rest);
  CHECK(profile.ticks() == ticks);
  for (std::size_t i = 0; i < profile.times().size(); ++i) {
    const std::string& name = profile.loops().all()[i].name;
    CAPTURE(name);
    CHECK(profile.times()[i].ticks == (plain.loops.contains(name) ? plain.loops.at(name) : 0));
    CHECK(profile.times()[i].entered ==
          (plain.entered.contains(name) ? plain.entered.at(name) : 0));
  }
  CHECK(profile.categories().size() == plain.categories.size());
  for (const LoopProfile::Category& category : profile.categories()) {
    CAPTURE(category.name);
    CHECK(category.ticks == plain.categories.at(category.name));
  }
}

}  // namespace

TEST_CASE("a log's times equal those of a line-by-line reader", "[pypylog][property]") {
  const auto seed = GENERATE(range(0U, 600U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const bool hex = random() % 2 != 0;
  const std::string log = random_log(random, hex);
  CAPTURE(log);
  PlainProfile plain;
  plain.read(log, hex ? 16 : 10);

  const TickBase base = hex ? TickBase::hex : TickBase::dec;
  check_against(profile_of(log, random, true, base), plain);
  check_against(profile_of(log, random, false, base), plain);
}

TEST_CASE("the times of loops, and of categories, add up to the time of the log",
          "[pypylog][property]") {
  const auto seed = GENERATE(range(0U, 300U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string log = random_log(random, random() % 2 != 0);
  CAPTURE(log);
  std::uint64_t shown = 0;
  const TickBase base = profile_of(log, random, true, TickBase::automatic).base();
  LoopProfile profile({.base = base,
                       .count_inner_bridges = false,
                       .visit = [&](const LoopSpan& span) { shown += span.ticks; }});
  profile.add(log);
  profile.finish();

  std::uint64_t loops = profile.outside();
  for (const LoopProfile::Times& times : profile.times()) loops += times.ticks;
  std::uint64_t categories = profile.rest();
  for (const LoopProfile::Category& category : profile.categories()) categories += category.ticks;
  std::uint64_t threads = 0;
  for (const LoopProfile::Thread& thread : profile.threads()) threads += thread.ticks();
  CHECK(loops == threads);
  CHECK(categories == threads);
  CHECK(shown == threads);
  CHECK(profile.ticks() == threads);
}

}  // namespace perfmap::pypylog_property
