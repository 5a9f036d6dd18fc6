#include "stacks/kernel_symbols.hpp"

#include "perfmap/kernel_symbols.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kText =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000100 t do_one\t\n"
    "ffffffff81000180 D not_code\n"
    "ffffffffc0200000 t _text\t[nf_tables]\n"
    "ffffffffc0201000 t nft_do_chain\t[nf_tables]\n";

/// A note as the kernel's linker writes it.
std::string note(std::string_view name, std::uint32_t type, std::string_view description) {
  test::SectionBytes bytes;
  bytes.u32(name.size()).u32(description.size()).u32(type).raw(name);
  while (bytes.size() % 4 != 0) bytes.u8(0);
  bytes.raw(description);
  while (bytes.size() % 4 != 0) bytes.u8(0);
  return bytes.bytes();
}

constexpr std::string_view kGnu("GNU\0", 4);

}  // namespace

TEST_CASE("the running kernel is known by the build-id among its notes", "[kernel]") {
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

TEST_CASE("where a symbol of the kernel lies is in a text that hides no addresses", "[kernel]") {
  CHECK(kernel_symbol_address(kText, "_stext") == 0xffffffff81000000);
  CHECK(kernel_symbol_address(kText, "_text") == 0xffffffff81000000);
  CHECK_FALSE(kernel_symbol_address(kText, "nft_do_chain"));  // a module's
  CHECK_FALSE(kernel_symbol_address(kText, "_etext"));
  CHECK_FALSE(kernel_symbol_address("0000000000000000 T _stext\n", "_stext"));
  CHECK_FALSE(kernel_symbol_address("", "_stext"));
}

TEST_CASE("the kernel's symbols are read when the first is asked for", "[kernel]") {
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

TEST_CASE("a text with hidden addresses names nothing", "[kernel]") {
  KernelSymbols symbols([] { return std::string_view("0000000000000000 T _stext\n"); });
  CHECK_FALSE(symbols.find(0xffffffff81000010));
  CHECK(symbols.is_hidden());
}

}  // namespace perfmap
