// SPDX-License-Identifier: MIT
#include "perfmap/profile/module.hpp"

#include <algorithm>
#include <atomic>
#include <elf.h>
#include <functional>
#include <lzma.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cursor.hpp"
#include "base/hex_bytes.hpp"
#include "base/lazy.hpp"
#include "dwarf/cfi_table.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_layout.hpp"
#include "elf/section_bytes.hpp"
#include "elf/symbol_table.hpp"
#include "module/module_file.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/debug_index.hpp"

namespace perfmap {

namespace {

/// Finds files that belong to a module, best candidate first.
class DebugFiles {
 public:
  struct Place {
    std::string root;
    std::string path;
  };
  /// Turns a candidate into a module; null if it is not an ELF file.
  using Opener = std::function<std::shared_ptr<const Module>(Input, const Place&)>;
  DebugFiles(const ModuleFiles& files, Opener opener)
      : files_(&files), opener_(std::move(opener)) {}

  /// The file with the module's debug information, or null.
  std::shared_ptr<const Module> find_debug(const Module& module) const;
  /// The file that the module shares with others of its package (dwz), or null.
  std::shared_ptr<const Module> find_alternate(const Module& module) const;

 private:
  std::shared_ptr<const Module> by_build_id(std::string_view build_id) const;
  std::shared_ptr<const Module> by_link(const Module& module) const;
  std::shared_ptr<const Module> fetched(std::string_view build_id) const;
  std::shared_ptr<const Module> open(const Place& place) const;
  /// The module's root directory, then the host's.
  std::vector<std::string> roots() const;

  const ModuleFiles* files_;
  Opener opener_;
};

constexpr std::size_t kMaxLinkName = 255;
constexpr std::size_t kMaxPath = 4095;
/// A larger file would take seconds to check.
constexpr std::size_t kMaxChecked = std::size_t{1} << 30;

/// "DIRECTORY/" of a path; "" if it has no slash.
std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string() : path.substr(0, slash + 1);
}

/// The content of .gnu_debuglink: a file name, and the checksum of that file.
struct DebugLink {
  std::string name;
  std::uint32_t checksum = 0;
};

std::optional<DebugLink> debug_link_of(const Module& module) {
  const std::string_view bytes = module.section_bytes(".gnu_debuglink");
  Cursor in(bytes, module.byte_order());
  const std::string_view name = in.c_string();
  in.skip((4 - in.position() % 4) % 4);
  DebugLink link{std::string(name), in.u32()};
  // The name must stay inside directories that we choose.
  const bool plain = !name.empty() && name.size() <= kMaxLinkName && name.find('/') == name.npos &&
                     name != "." && name != "..";
  return in.ok() && plain ? std::optional(std::move(link)) : std::nullopt;
}

bool is_same_file(const Module& a, const Module& b) noexcept {
  return a.facts().device == b.facts().device && a.facts().inode == b.facts().inode;
}

std::uint32_t checksum_of(std::string_view bytes) noexcept {
  return lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 0);
}

/// Build ids decide if both files have one.
bool belongs(const Module& candidate, const Module& module, const DebugLink& link) noexcept {
  if (is_same_file(candidate, module)) return false;
  if (!module.build_id().empty() && !candidate.build_id().empty()) {
    return candidate.build_id() == module.build_id();
  }
  return candidate.bytes().size() <= kMaxChecked && checksum_of(candidate.bytes()) == link.checksum;
}

std::vector<std::string> DebugFiles::roots() const {
  if (files_->root.empty()) return {""};
  return {files_->root, ""};
}

std::shared_ptr<const Module> DebugFiles::open(const Place& place) const {
  Result<Input> input = open_module_file(place.root, place.path);
  return input ? opener_(*std::move(input), place) : nullptr;
}

std::shared_ptr<const Module> DebugFiles::by_build_id(std::string_view build_id) const {
  if (build_id.size() < 2) return nullptr;
  const std::string hex = hex_of_bytes(build_id);
  const std::string name = "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
  for (const std::string& root : roots()) {
    for (const std::string& directory : files_->debug_directories) {
      auto candidate = open({root, directory + name});
      if (candidate != nullptr && candidate->build_id() == build_id) return candidate;
    }
  }
  return nullptr;
}

std::shared_ptr<const Module> DebugFiles::by_link(const Module& module) const {
  const std::optional<DebugLink> link = debug_link_of(module);
  if (!link || !module.facts().is_file) return nullptr;
  const std::string own = directory_of(module.path());
  const auto look = [&](const std::string& root,
                        const std::string& path) -> std::shared_ptr<const Module> {
    auto candidate = open({root, path});
    return candidate != nullptr && belongs(*candidate, module, *link) ? candidate : nullptr;
  };
  for (const std::string& directory : {own, own + ".debug/"}) {
    if (auto found = look(files_->root, directory + link->name)) return found;
  }
  if (!own.starts_with('/')) return nullptr;
  for (const std::string& root : roots()) {
    for (const std::string& directory : files_->debug_directories) {
      if (auto found = look(root, directory + own + link->name)) return found;
    }
  }
  return nullptr;
}

std::shared_ptr<const Module> DebugFiles::find_debug(const Module& module) const {
  if (files_->debug_directories.empty()) return nullptr;
  auto found = by_build_id(module.build_id());
  if (found != nullptr && is_same_file(*found, module)) found = nullptr;
  if (found == nullptr) found = by_link(module);
  const bool has_dwarf = module.find_section(".debug_info") != nullptr;
  return found != nullptr || has_dwarf ? found : fetched(module.build_id());
}

std::shared_ptr<const Module> DebugFiles::fetched(std::string_view build_id) const {
  if (!files_->fetch || build_id.empty()) return nullptr;
  const std::optional<std::string> path = files_->fetch(build_id);
  auto candidate = path ? open({"", *path}) : nullptr;
  return candidate != nullptr && candidate->build_id() == build_id ? candidate : nullptr;
}

std::shared_ptr<const Module> DebugFiles::find_alternate(const Module& module) const {
  Cursor in(module.section_bytes(".gnu_debugaltlink"), module.byte_order());
  const std::string path(in.c_string());
  const std::string_view build_id = in.rest();
  if (!in.ok() || path.empty() || path.size() > kMaxPath || build_id.empty()) return nullptr;
  if (files_->debug_directories.empty()) return nullptr;
  if (auto found = by_build_id(build_id)) return found;
  if (!module.facts().is_file) return fetched(build_id);
  const std::string whole = path.starts_with('/') ? path : directory_of(module.path()) + path;
  auto candidate = open({files_->root, whole});
  const bool is_right = candidate != nullptr && candidate->build_id() == build_id;
  return is_right ? candidate : fetched(build_id);
}

}  // namespace

/// The parts of a Module. Only input and layout exist from the start.
struct Module::State {
  /// Which related files are searched for.
  enum class Company : std::uint8_t { all, alternate, none };

  Input input;
  std::string path;
  ElfLayout layout;
  ModuleFiles files;
  Company company = Company::none;

  /// Null if there is none. Call it only when needed: most modules are never asked for more than
  /// their own bytes.
  const Module* debug_of(const Module& module) const;
  const Module* alternate_of(const Module& module) const;
  Lazy<std::shared_ptr<const Module>> debug = {};
  Lazy<std::shared_ptr<const Module>> alternate = {};

  struct Symbols {
    SymbolSources::Made made;
  };
  /// Built on the first call. `module` is the owner of this state.
  const SymbolTable& symbols(const Module& module);
  template <class Gather>
  const SymbolTable& symbols_of(const Module& module, const Gather& gather);
  SymbolSources symbol_sources(const Module& module) const;

  /// Answers queries until these have taken as long as building the table.
  struct FirstSymbols {
    std::optional<SymbolSources::MadeBlocks> made;
    mutable std::atomic<std::int64_t> steps_left{0};
    mutable DemangledNames demangled;
  };
  /// Without blocks if the table is built as fast.
  const FirstSymbols& first_symbols(const Module& module);
  std::optional<Symbol> find_first(const Module& module, Address vaddr);
  Lazy<std::unique_ptr<const FirstSymbols>> first = {};

  Once once = {};
  Symbols made = {};
  std::atomic<std::uint64_t> symbol_bytes{0};
  DemangledNames demangled = {};
  std::uint64_t demangled_bytes() const noexcept {
    const auto* const early = first.made();
    return demangled.bytes() + (early != nullptr ? (*early)->demangled.bytes() : 0);
  }

  /// The module in .gnu_debugdata, or null.
  const Module* packed_module(const Module& module) const;
  Lazy<std::shared_ptr<const Module>> packed = {};
  Lazy<std::unique_ptr<const CfiTable>> cfi = {};

  Once lines_once = {};
  std::atomic<bool> has_lines{false};
  std::optional<DebugIndex> lines = std::nullopt;
  std::optional<Error> no_lines = std::nullopt;  // the reason, if there is DWARF
  /// Built on the first call. `program` is the module for which `module` has the debug information.
  const DebugIndex* debug_index(const Module& module, const Module& program);
};

/// Opens a module together with the rule which files belong to it.
class ModuleOpener {
 public:
  using Company = Module::State::Company;
  static Result<std::shared_ptr<const Module>> open(Input input, std::string path,
                                                    const ModuleFiles& files, Company company);
};

namespace {

/// The first candidate with the property; executable ones first.
template <class Has>
const LoadSegment* segment_with(std::span<const LoadSegment> segments, Has has) noexcept {
  const LoadSegment* other = nullptr;
  for (const LoadSegment& segment : segments) {
    if (!has(segment)) continue;
    if (segment.is_executable) return &segment;
    if (other == nullptr) other = &segment;
  }
  return other;
}

}  // namespace

Module::Module(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Module::~Module() = default;

Result<std::shared_ptr<const Module>> ModuleOpener::open(Input input, std::string path,
                                                         const ModuleFiles& files,
                                                         Company company) {
  Result<ElfLayout> layout = read_elf_layout(input.text(), input.name());
  if (!layout) return failure(layout);
  std::unique_ptr<Module::State> state(
      new Module::State{std::move(input), std::move(path), *std::move(layout), files, company});
  const std::shared_ptr<const Module> module(new Module(std::move(state)));
  // The process's root may vanish with the process.
  if (!files.root.empty()) {
    module->state_->debug_of(*module);
    module->state_->alternate_of(*module);
  }
  return module;
}

namespace {

DebugFiles files_of(const ModuleFiles& files, ModuleOpener::Company of_candidate) {
  return {files, [&files, of_candidate](Input found, const DebugFiles::Place& place) {
            const ModuleFiles there{place.root, files.debug_directories, files.fetch};
            return ModuleOpener::open(std::move(found), place.path, there, of_candidate)
                .value_or(nullptr);
          }};
}

}  // namespace

const Module* Module::State::debug_of(const Module& module) const {
  if (company != Company::all) return nullptr;
  return debug.get([&] { return files_of(files, Company::alternate).find_debug(module); }).get();
}

const Module* Module::State::alternate_of(const Module& module) const {
  if (company == Company::none) return nullptr;
  return alternate.get([&] { return files_of(files, Company::none).find_alternate(module); }).get();
}

Result<std::shared_ptr<const Module>> Module::open(const std::string& path,
                                                   const ModuleFiles& files) {
  Result<Input> input = open_module_file(files.root, path);
  if (!input) return failure(input);
  return ModuleOpener::open(*std::move(input), path, files, ModuleOpener::Company::all);
}

Result<std::shared_ptr<const Module>> Module::open(Input input, const ModuleFiles& files) {
  std::string path = input.name();
  return ModuleOpener::open(std::move(input), std::move(path), files, ModuleOpener::Company::all);
}

const std::string& Module::path() const noexcept { return state_->path; }
const FileFacts& Module::facts() const noexcept { return state_->input.facts(); }
std::string_view Module::bytes() const noexcept { return state_->input.text(); }
std::uint16_t Module::machine() const noexcept { return state_->layout.machine; }
std::uint16_t Module::type() const noexcept { return state_->layout.type; }
bool Module::is_64() const noexcept { return state_->layout.is_64; }
std::endian Module::byte_order() const noexcept { return state_->layout.order; }
Address Module::entry() const noexcept { return state_->layout.entry; }
std::string_view Module::build_id() const noexcept { return state_->layout.build_id; }
const Module* Module::debug_file() const { return state_->debug_of(*this); }
const Module* Module::alternate_file() const { return state_->alternate_of(*this); }

std::span<const LoadSegment> Module::segments() const noexcept { return state_->layout.segments; }
std::span<const ElfSectionFacts> Module::sections() const noexcept {
  return state_->layout.sections;
}

std::optional<Address> Module::file_offset_to_vaddr(std::uint64_t offset) const noexcept {
  const LoadSegment* const segment = segment_with(
      segments(), [offset](const LoadSegment& s) { return offset - s.offset < s.file_size; });
  if (segment == nullptr) return std::nullopt;
  return segment->range.begin + (offset - segment->offset);
}

std::optional<std::uint64_t> Module::vaddr_to_file_offset(Address vaddr) const noexcept {
  const LoadSegment* const segment = segment_with(
      segments(), [vaddr](const LoadSegment& s) { return vaddr - s.range.begin < s.file_size; });
  if (segment == nullptr) return std::nullopt;
  const std::uint64_t within = vaddr - segment->range.begin;
  if (within > UINT64_MAX - segment->offset) return std::nullopt;
  return segment->offset + within;
}

bool Module::is_code(Address vaddr) const noexcept {
  return std::any_of(segments().begin(), segments().end(), [vaddr](const LoadSegment& s) {
    return s.is_executable && s.range.contains(vaddr);
  });
}

const ElfSectionFacts* Module::find_section(std::string_view name) const noexcept {
  const auto found = std::find_if(sections().begin(), sections().end(),
                                  [name](const ElfSectionFacts& s) { return s.name == name; });
  return found == sections().end() ? nullptr : &*found;
}

std::string_view Module::bytes_of(const ElfSectionFacts& section) const noexcept {
  return state_->layout.bytes_of(bytes(), section);
}

std::string_view Module::section_bytes(std::string_view name) const noexcept {
  const ElfSectionFacts* const section = find_section(name);
  return section == nullptr ? std::string_view() : bytes_of(*section);
}

std::string_view Module::bytes_at(Address vaddr) const noexcept {
  const LoadSegment* const segment = segment_with(
      segments(), [vaddr](const LoadSegment& s) { return vaddr - s.range.begin < s.file_size; });
  if (segment == nullptr || segment->offset >= bytes().size()) return {};
  const std::string_view whole = bytes().substr(segment->offset, segment->file_size);
  const std::uint64_t within = vaddr - segment->range.begin;
  return within < whole.size() ? whole.substr(within) : std::string_view();
}

std::uint64_t Module::bytes_held() const noexcept {
  std::uint64_t held = sizeof(State) + bytes().size() + state_->symbol_bytes.load() +
                       state_->demangled_bytes() + sections().size() * sizeof(ElfSectionFacts);
  if (state_->has_lines.load(std::memory_order_acquire)) held += state_->lines->stats().bytes;
  if (const auto* const cfi = state_->cfi.made()) held += (*cfi)->bytes_held();
  for (const auto* other : {&state_->debug, &state_->alternate, &state_->packed}) {
    const auto* const made = other->made();
    if (made != nullptr && *made != nullptr) held += (*made)->bytes_held();
  }
  return held;
}

namespace {

/// Sorting fewer symbols takes no noticeable time.
constexpr std::size_t kManySymbols = 4096;
/// Sorting a symbol and reading its name takes about as long as so many steps of a search.
constexpr std::uint64_t kStepsEach = 8;
/// Marks ids of symbols found through blocks.
constexpr std::uint32_t kOfFirst = std::uint32_t{1} << 31;

/// Executable sections, because executable segments also contain tables and headers; segments if
/// there are no sections.
CodeAreas code_areas_of(const Module& module) {
  std::vector<AddressRange> ranges;
  constexpr std::uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
  for (const ElfSectionFacts& section : module.sections()) {
    if ((section.flags & kCode) != kCode) continue;
    ranges.push_back(AddressRange::clamped(section.address, section.size));
  }
  const bool has_sections = !ranges.empty();
  for (const LoadSegment& segment : module.segments()) {
    if (!has_sections && segment.is_executable) ranges.push_back(segment.range);
  }
  return CodeAreas(std::move(ranges));
}

std::shared_ptr<const Module> unpack(const Module& module) {
  const std::string_view packed = module.section_bytes(".gnu_debugdata");
  if (packed.empty()) return nullptr;
  std::optional<std::string> bytes = unpack_symbols(packed);
  if (!bytes) return nullptr;
  Input input = Input::from_text(*std::move(bytes), module.path() + ":.gnu_debugdata");
  return ModuleOpener::open(std::move(input), {}, {}, ModuleOpener::Company::none)
      .value_or(nullptr);
}

}  // namespace

const Module* Module::State::packed_module(const Module& module) const {
  return packed.get([&] { return unpack(module); }).get();
}

SymbolSources Module::State::symbol_sources(const Module& module) const {
  const Module* const packed_one = packed_module(module);
  SymbolSources sources;
  sources.add_symbols_of(module);
  if (const Module* const separate = debug_of(module)) sources.add_symbols_of(*separate);
  if (packed_one != nullptr) sources.add_symbols_of(*packed_one);
  sources.add_plt_of(module);
  return sources;
}

const SymbolTable& Module::State::symbols(const Module& module) {
  return symbols_of(module, [&] { return symbol_sources(module); });
}

template <class Gather>
const SymbolTable& Module::State::symbols_of(const Module& module, const Gather& gather) {
  once.run([&] {
    Symbols symbols;
    symbols.made = gather().table(code_areas_of(module));
    made = std::move(symbols);
    symbol_bytes += made.made.table.bytes() + made.made.names->size();
  });
  return made.made.table;
}

const Module::State::FirstSymbols& Module::State::first_symbols(const Module& module) {
  return *first.get([&]() -> std::unique_ptr<const FirstSymbols> {
    auto result = std::make_unique<FirstSymbols>();
    SymbolSources sources = symbol_sources(module);
    if (sources.size() < kManySymbols) {
      symbols_of(module, [&] { return std::move(sources); });
      return result;
    }
    result->made = std::move(sources).blocks(code_areas_of(module));
    if (!result->made) return result;
    const SymbolBlocks& blocks = result->made->blocks;
    result->steps_left = static_cast<std::int64_t>(kStepsEach * blocks.size());
    symbol_bytes += blocks.bytes() + result->made->names->size();
    return result;
  });
}

std::optional<Symbol> Module::State::find_first(const Module& module, Address vaddr) {
  const FirstSymbols& have = first_symbols(module);
  if (!have.made || have.steps_left.load(std::memory_order_relaxed) <= 0) {
    return symbols(module).find(vaddr);
  }
  std::uint64_t steps = 0;
  std::optional<Symbol> found = have.made->blocks.find(vaddr, steps);
  have.steps_left.fetch_sub(static_cast<std::int64_t>(steps), std::memory_order_relaxed);
  if (found) found->id |= kOfFirst;
  return found;
}

std::optional<Symbol> Module::find_symbol(Address vaddr) const {
  State& state = *state_;
  if (state.once.is_done()) return state.made.made.table.find(vaddr);
  return state.find_first(*this, vaddr);
}

std::size_t Module::symbol_count() const { return state_->symbols(*this).size(); }

std::string_view Module::demangled(const Symbol& symbol) const {
  if ((symbol.id & kOfFirst) != 0) {
    const State::FirstSymbols& first = state_->first_symbols(*this);
    if (!first.made) return symbol.name;
    const auto count = static_cast<std::uint32_t>(first.made->blocks.size());
    return first.demangled.of(symbol.id & ~kOfFirst, symbol.name, count);
  }
  const auto count = static_cast<std::uint32_t>(state_->symbols(*this).piece_count());
  return state_->demangled.of(symbol.id, symbol.name, count);
}

namespace {

bool has_dwarf(const Module& module) {
  return module.find_section(".debug_info") != nullptr ||
         module.find_section(".zdebug_info") != nullptr ||
         module.find_section(".debug_info.dwo") != nullptr;
}

/// The package of split units, next to the program or its debug file.
Result<Input> open_package(const std::string& root, const std::vector<std::string>& programs) {
  for (const std::string& program : programs) {
    Result<Input> input = open_module_file(root, program + ".dwp");
    if (input) return input;
  }
  return Failure(Error::not_found("no package of split units"));
}

}  // namespace

const DebugIndex* Module::State::debug_index(const Module& module, const Module& program) {
  lines_once.run([&] {
    if (!has_dwarf(module)) return;
    DebugOptions options;
    if (const Module* const shared = alternate_of(module))
      options.alternate = shared->state_->input;
    options.open_split = [below = files.root](const std::string& file) {
      return open_module_file(below, file);
    };
    std::vector<std::string> programs;
    for (const Module* const one : {&program, &module}) {
      if (one->facts().is_file) programs.push_back(one->path());
    }
    options.open_package = [below = files.root, programs] { return open_package(below, programs); };
    Result<DebugIndex> index = DebugIndex::from_input(input, std::move(options));
    if (!index) {
      no_lines = index.error();
      return;
    }
    lines = *std::move(index);
    has_lines.store(true, std::memory_order_release);
  });
  return lines ? &*lines : nullptr;
}

const DebugIndex* Module::debug_index() const {
  const DebugIndex* const own = state_->debug_index(*this, *this);
  if (own != nullptr) return own;
  const Module* const debug = debug_file();
  return debug != nullptr ? debug->state_->debug_index(*debug, *this) : nullptr;
}

const Error* Module::debug_failure() const {
  if (debug_index() != nullptr) return nullptr;
  const Module* const debug = debug_file();
  if (state_->no_lines) return &*state_->no_lines;
  return debug != nullptr && debug->state_->no_lines ? &*debug->state_->no_lines : nullptr;
}

const CfiTable& cfi_of(const Module& module) {
  const auto packed = [&module] { return module.state_->packed_module(module); };
  return *module.state_->cfi.get([&] { return std::make_unique<const CfiTable>(module, packed); });
}

}  // namespace perfmap
