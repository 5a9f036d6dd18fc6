#include "perfdata/machines.hpp"

#include <algorithm>
#include <array>

namespace perfmap {
namespace {

struct Machines {
  std::string_view arch;  ///< prefix of the name
  std::array<std::uint16_t, 2> elf;
};

// EM_… numbers; machines with only one have it twice.
constexpr std::array<Machines, 13> kMachines = {{{"x86_64", {62, 3}},
                                                 {"i386", {3, 3}},
                                                 {"i486", {3, 3}},
                                                 {"i586", {3, 3}},
                                                 {"i686", {3, 3}},
                                                 {"aarch64", {183, 40}},
                                                 {"arm", {40, 40}},
                                                 {"riscv", {243, 243}},
                                                 {"s390", {22, 22}},
                                                 {"ppc64", {21, 20}},
                                                 {"ppc", {20, 20}},
                                                 {"loongarch", {258, 258}},
                                                 {"mips", {8, 8}}}};

}  // namespace

std::span<const std::uint16_t> elf_machines_of(std::string_view arch) noexcept {
  const auto* const found =
      std::find_if(kMachines.begin(), kMachines.end(),
                   [&](const Machines& machines) { return arch.starts_with(machines.arch); });
  if (found == kMachines.end()) return {};
  return found->elf;
}

}  // namespace perfmap
