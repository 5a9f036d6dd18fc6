// SPDX-License-Identifier: MIT
#include <map>
#include <random>
#include <string>
#include <vector>

#include "perfmap/pypylog.hpp"
#include "support/catch.hpp"

namespace perfmap::pypylog_code_property {
namespace {

constexpr Address kBase = 0x1000;
constexpr std::uint64_t kRoom = 0x100;
constexpr std::uint64_t kMaxChanged = 16;  // bytes changed at once

/// Memory as single bytes, and a log with the same contents.
class PlainMemory {
 public:
  void write(Address begin, std::uint64_t size, std::mt19937& random) {
    char number[64];
    std::snprintf(number, sizeof number, "CODE_DUMP @%llx +0  ",
                  static_cast<unsigned long long>(begin));
    std::string line = number;
    const bool waits = waiting_.count(begin) != 0;
    const bool is_change = size <= kMaxChanged && !waits && owners_.count(begin) != 0;
    auto& bytes = is_change ? images_[owners_[begin]] : waiting_;
    for (Address at = begin; at < begin + size; ++at) {
      const auto byte = static_cast<unsigned>(random() & 0xff);
      std::snprintf(number, sizeof number, "%02X", byte);
      line += number;
      bytes[at] = static_cast<char>(byte);
    }
    section("jit-backend-dump", line);
  }

  void place(Address begin, std::uint64_t size) {
    const auto loop = images_.size();
    images_.emplace_back();
    ranges_.push_back({begin, size});
    for (Address at = begin; at < begin + size; ++at) {
      owners_[at] = loop;
      if (const auto node = waiting_.extract(at)) images_[loop][at] = node.mapped();
    }
    char line[160];
    std::snprintf(line, sizeof line, "Loop %zu (f;/t.py:1-2~#0 X) has address 0x%llx to 0x%llx",
                  loop, static_cast<unsigned long long>(begin),
                  static_cast<unsigned long long>(begin + size));
    section("jit-backend-addr", line);
  }

  std::string code(std::size_t loop) const {
    std::string code(ranges_[loop].size, '\0');
    for (const auto& [at, byte] : images_[loop]) {
      if (ranges_[loop].contains(at)) code[at - ranges_[loop].begin] = byte;
    }
    return code;
  }
  std::size_t loops() const noexcept { return images_.size(); }
  const std::string& log() const noexcept { return log_; }

 private:
  void section(const std::string& category, const std::string& line) {
    const std::string tick = "[" + std::to_string(++tick_) + "] ";
    log_ += tick + "{" + category + "\n" + line + "\n" + tick + category + "}\n";
  }

  std::map<Address, char> waiting_;
  std::map<Address, std::size_t> owners_;
  std::vector<std::map<Address, char>> images_;
  std::vector<AddressRange> ranges_;
  std::string log_;
  int tick_ = 0;
};

PlainMemory random_memory(std::mt19937& random) {
  PlainMemory memory;
  const auto steps = random() % 40;
  for (unsigned long i = 0; i < steps; ++i) {
    const Address begin = kBase + random() % kRoom;
    switch (random() % 4) {
      case 0: memory.write(begin, 1 + random() % kMaxChanged, random); break;
      case 1: memory.write(begin, kMaxChanged + 1 + random() % 64, random); break;
      case 2: memory.write(begin, 4, random); break;
      default: memory.place(begin, 1 + random() % 80);
    }
  }
  return memory;
}

}  // namespace

TEST_CASE("the code of loops equals a byte-by-byte simulation of memory", "[property][pypylog]") {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    const PlainMemory memory = random_memory(random);
    LoopProfile profile({.base = TickBase::dec, .keep_code_bytes = true});
    profile.add(memory.log());
    profile.finish();
    Result<JitdumpBytes> bytes = dump_of_loops(profile.loops(), memory.log(), {});
    REQUIRE(bytes);
    const Jitdump dump(Input::from_text(std::move(bytes->bytes), "made"));
    Diagnostics problems(1);
    std::size_t loop = 0;
    CAPTURE(memory.log());
    dump.for_each(problems, [&](const JitRecord& record) {
      const auto load = decode_load(record);
      if (load) CHECK(std::string(load->code) == memory.code(loop++));
    });
    CHECK(loop == memory.loops());
    CHECK(problems.total() == 0);
  }
}

}  // namespace perfmap::pypylog_code_property
