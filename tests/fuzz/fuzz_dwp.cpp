// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "dwarf/dwarf_file.hpp"
#include "support/dwarf_bytes.hpp"
#include "support/package_oracle.hpp"

namespace {

using namespace perfmap;
using test::PackageOracle;

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxIds = 64;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Section {
  unsigned number;
  unsigned version;  // of the index; 0: both
  const char* name;
  std::string_view DwarfSections::*member;
};
constexpr Section kSections[] = {
    {1, 0, ".debug_info.dwo", &DwarfSections::info},
    {3, 0, ".debug_abbrev.dwo", &DwarfSections::abbreviations},
    {4, 0, ".debug_line.dwo", &DwarfSections::line},
    {6, 0, ".debug_str_offsets.dwo", &DwarfSections::string_offsets},
    {8, 5, ".debug_rnglists.dwo", &DwarfSections::range_lists},
};

/// A unit has the part of each section that the oracle found, or the whole section.
void check_parts(const DwarfFile& unit, const PackageOracle::Parts& parts,
                 const PackageOracle& oracle, const std::string& contents) {
  for (const Section& section : kSections) {
    const std::string_view bytes = unit.sections().*section.member;
    const auto& part = parts[section.number];
    if (!part || (section.version != 0 && section.version != oracle.version())) {
      require(bytes == contents);
      continue;
    }
    require(part->offset <= contents.size() && part->size <= contents.size() - part->offset);
    require(bytes == std::string_view(contents).substr(part->offset, part->size));
  }
  const std::string_view file = unit.input().text();
  const std::string_view info = unit.sections().info;
  require(std::less_equal<>()(file.data(), info.data()));
  require(std::less_equal<>()(info.data() + info.size(), file.data() + file.size()));
  require(!unit.units().empty());
}

/// Whether any unit in the section can be read.
bool has_unit(std::string_view info) {
  DwarfCursor cursor(info, std::endian::little);
  while (!cursor.at_end()) {
    const DwarfUnit unit = read_unit_header(cursor);
    if (!cursor.ok()) return false;
    if (unit.is_readable()) return true;
  }
  return false;
}

/// Whether all parts are within their sections and contain a unit.
bool is_usable(const PackageOracle::Parts& parts, const PackageOracle& oracle,
               const std::string& contents) {
  for (const Section& section : kSections) {
    const auto& part = parts[section.number];
    if (!part || (section.version != 0 && section.version != oracle.version())) continue;
    if (part->offset > contents.size() || part->size > contents.size() - part->offset) return false;
  }
  const std::string_view info = contents;
  return has_unit(parts[1] ? info.substr(parts[1]->offset, parts[1]->size) : info);
}

/// Ids that the index may contain, and some that it does not.
std::vector<std::uint64_t> ids_in(std::string_view index) {
  std::vector<std::uint64_t> ids{0, 1, UINT64_MAX};
  for (std::size_t at = 16; at + 8 <= index.size() && ids.size() < kMaxIds; at += 8) {
    std::uint64_t id = 0;
    std::memcpy(&id, index.data() + at, sizeof id);
    ids.push_back(id);
    ids.push_back(id ^ std::uint64_t{1} << 33);
  }
  return ids;
}

}  // namespace

/// For any index of a package, a unit has the same parts of sections as a plain reader finds, and
/// they are within the sections. The first two bytes are the size of the index, which follows; the
/// rest is the content of every section.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t index_size = std::min<std::size_t>(data[0] + 256U * data[1], bytes.size());
  const std::string index = bytes.substr(0, index_size);
  const std::string contents = bytes.substr(index_size);
  std::vector<std::pair<std::string, std::string>> sections{{".debug_cu_index", index}};
  for (const Section& section : kSections) sections.emplace_back(section.name, contents);
  const auto package =
      DwarfPackage::open(Input::from_text(test::elf_with(sections), "fuzz.dwp"), kMaxBytes);
  const PackageOracle oracle(index);
  require((package != nullptr) == (oracle.is_whole() && has_unit(contents)));
  if (package == nullptr) return 0;
  for (const std::uint64_t id : ids_in(index)) {
    const auto unit = package->find(id);
    const auto parts = oracle.find(id);
    require((unit != nullptr) == (parts && is_usable(*parts, oracle, contents)));
    if (unit != nullptr) check_parts(*unit, *parts, oracle, contents);
  }
  return 0;
}
