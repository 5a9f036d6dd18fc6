// SPDX-License-Identifier: MIT
#include "stacks/kernel_symbols.hpp"

#include <string>
#include <vector>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"
#include "support/recording_bytes.hpp"

namespace perfmap::kernel_symbols_test {
namespace {

constexpr std::string_view kText =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000100 t do_one\t\n"
    "ffffffff81000180 D not_code\n"
    "ffffffffc0200000 t _text\t[nf_tables]\n"
    "ffffffffc0201000 t nft_do_chain\t[nf_tables]\n";

/// An ELF note as the kernel's linker writes it.
std::string note(std::string_view name, std::uint32_t type, std::string_view description) {
  test::SectionBytes bytes;
  bytes.u32(name.size()).u32(description.size()).u32(type).raw(name);
  while (bytes.size() % 4 != 0) bytes.u8(0);
  bytes.raw(description);
  while (bytes.size() % 4 != 0) bytes.u8(0);
  return bytes.bytes();
}

constexpr std::string_view kGnu("GNU\0", 4);

/// A recording with the kernel's mapping, its build id, and samples at these addresses. Addresses
/// in the upper half of the address space are in the kernel.
std::string recording_of(std::string_view build_id, const std::vector<std::uint64_t>& addresses) {
  const test::RecordingBytes bytes;
  const test::EventShape shape;
  const test::SampleValues trailer;
  test::Bytes mapping = bytes.bytes();
  mapping.u32(UINT32_MAX).u32(0).u64(0xffffffff81000000).u64(0x1000000).u64(0xffffffff81000000);
  mapping.padded("[kernel.kallsyms]_stext").raw(bytes.trailer(shape, trailer));
  std::string data = bytes.record(1, mapping.text(), 1);
  for (const std::uint64_t address : addresses) {
    test::SampleValues values;
    values.pid = values.tid = 42;
    values.time = 5;
    values.ip = address;
    data += bytes.sample(shape, values, address >> 63 != 0 ? 1 : 2);
  }
  test::Bytes id = bytes.bytes();
  id.u32(UINT32_MAX).raw(build_id).zeros(24 - build_id.size()).padded("[kernel.kallsyms]");
  return bytes.file({shape}, data, {.features = {{2, bytes.record(0, id.text(), 1)}}});
}

}  // namespace

TEST_CASE("the build id of the running kernel is found among its notes", "[kernel]") {
  const std::string id = note(kGnu, 3, "twenty bytes of an id");
  CHECK(kernel_build_id(id) == "twenty bytes of an id");
  CHECK(kernel_build_id(note("Xen", 3, "no") + note(kGnu, 1, "no") + id) ==
        "twenty bytes of an id");
  CHECK(kernel_build_id("").empty());
  CHECK(kernel_build_id(note("Xen", 3, "no")).empty());
  for (std::size_t size = 0; size < id.size() - 3; ++size) {
    CHECK(kernel_build_id(id.substr(0, size)).empty());
  }
  CHECK(kernel_build_id(std::string(40, '\xff')).empty());
}

TEST_CASE("the address of a kernel symbol is found in a kallsyms text without hidden addresses",
          "[kernel]") {
  CHECK(kernel_symbol_address(kText, "_stext") == 0xffffffff81000000);
  CHECK(kernel_symbol_address(kText, "_text") == 0xffffffff81000000);
  CHECK_FALSE(kernel_symbol_address(kText, "nft_do_chain"));  // in a module
  CHECK_FALSE(kernel_symbol_address(kText, "_etext"));
  CHECK_FALSE(kernel_symbol_address("0000000000000000 T _stext\n", "_stext"));
  CHECK_FALSE(kernel_symbol_address("", "_stext"));
}

TEST_CASE("kernel symbols are read at the first look-up", "[kernel]") {
  int reads = 0;
  KernelSymbols symbols([&reads] {
    ++reads;
    return kText;
  });
  CHECK(reads == 0);
  const auto name = [&symbols](Address address) {
    const auto found = symbols.find(address);
    return found ? std::string(found->module) + " " + std::string(found->name) : "";
  };
  CHECK(name(0xffffffff81000010) == "[kernel.kallsyms] _stext");
  CHECK(name(0xffffffff81000190) == "[kernel.kallsyms] do_one");
  CHECK(name(0xffffffffc0201008) == "[nf_tables] nft_do_chain");
  CHECK(name(0x1000).empty());
  CHECK(reads == 1);
  CHECK_FALSE(symbols.is_hidden());
}

TEST_CASE("a kallsyms text with hidden addresses gives no names", "[kernel]") {
  KernelSymbols symbols([] { return std::string_view("0000000000000000 T _stext\n"); });
  CHECK_FALSE(symbols.find(0xffffffff81000010));
  CHECK(symbols.is_hidden());
}

TEST_CASE("kernel symbols are requested once, with the recorded build id and address",
          "[kernel][stacks]") {
  const std::string id = "twenty bytes, an id.";
  std::vector<RecordedKernel> asked;
  std::vector<std::string> names;
  const auto read = [&](const std::vector<std::uint64_t>& addresses) {
    const auto recording =
        Recording::open(Input::from_text(recording_of(id, addresses), "perf.data"));
    REQUIRE(recording);
    StackOptions options;
    options.find_kallsyms = [&](const RecordedKernel& kernel) {
      asked.push_back(kernel);
      return kText;
    };
    StackReader reader(*recording, std::move(options));
    Diagnostics problems(1);
    reader.read(
        [&](const StackSample& sample) {
          for (const StackFrame& frame : sample.frames) {
            names.emplace_back(reader.table().function_of(frame.place).name);
          }
        },
        problems);
  };
  read({0x1000});
  CHECK(asked.empty());
  names.clear();
  read({0xffffffff81000110, 0x1000, 0xffffffffc0201000});
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].build_id == id);
  CHECK(asked[0].symbol == "_stext");
  CHECK(asked[0].address == 0xffffffff81000000);
  CHECK(names == std::vector<std::string>{"do_one", "", "nft_do_chain"});
}

}  // namespace perfmap::kernel_symbols_test
