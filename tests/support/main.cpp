// SPDX-License-Identifier: MIT
// A filter that matches no test case is an error: an unescaped comma in a title makes it two
// filters. By default, Catch2 v2 accepts that, and v3 does if another filter matches.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
constexpr auto kRefused = Catch::WarnAbout::UnmatchedTestSpec;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
constexpr auto kRefused = Catch::WarnAbout::NoTests;
#endif

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().warnings = kRefused;
  return session.run(argc, argv);
}
