#include "perfmap/module.hpp"

#include <algorithm>
#include <elf.h>

#include "modules/debug_files.hpp"
#include "modules/module_file.hpp"
#include "modules/module_state.hpp"

namespace perfmap {
namespace {

/// The first that has it, executable ones before others.
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
  if (!layout) return Failure(std::move(layout.error()));
  std::unique_ptr<Module::State> state(
      new Module::State{std::move(input), std::move(path), *std::move(layout), files, company});
  const std::shared_ptr<const Module> module(new Module(std::move(state)));
  // A process's root goes with the process.
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
  if (!input) return Failure(std::move(input.error()));
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

}  // namespace perfmap
