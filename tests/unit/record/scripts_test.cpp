// SPDX-License-Identifier: MIT
// Scripts as attackers write them.

#include "record/scripts.hpp"

#include <ctime>
#include <string>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::scripts_test {
namespace {

TEST_CASE("a script that names its directory many times is read in bounded time", "[record]") {
  const test::Scratch scratch;
  std::string directory;
  for (int i = 0; i < 14; ++i) directory += std::string(200, 'd') + "/";
  std::string text;
  while (text.size() < (std::size_t{64} << 10)) text += "echo ${0%/*}\n";
  const std::string path = scratch.write(directory + "run", text);
  const std::clock_t begin = std::clock();
  // What follows the first 64 KiB is not read.
  CHECK(can_create_by_script(path, {}) == CanCreate::unknown);
  CHECK(std::clock() - begin < 5 * CLOCKS_PER_SEC);
}

TEST_CASE("scripts without a command start nothing", "[record]") {
  const test::Scratch scratch;
  const std::string nul(1000, '\0');
  for (const std::string& text : {std::string(), nul, std::string("#!"), std::string("cd '\"")}) {
    const std::string path = scratch.write("run", text);
    CHECK(can_create_by_script(path, {}) <= CanCreate::unknown);
    CHECK(interpreter_of(path).empty());
  }
  CHECK(can_create_by_script(scratch / "missing", {}) == CanCreate::yes);
}

}  // namespace
}  // namespace perfmap::scripts_test
