// SPDX-License-Identifier: MIT
#include "bench/dwfl_unwinder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <unistd.h>

#include "perfmap/profile/module.hpp"

namespace perfmap::bench {
namespace {

/// Global because find_elf() gets no pointer to its unwinder.
std::map<std::string, Elf*>& shared_elves() {
  static std::map<std::string, Elf*> elves;
  return elves;
}

std::string name_of(const Module& module) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(&module));
}

constexpr std::size_t kMaxNumbers = 33;

/// perf's numbers of the registers that libdwfl wants, by DWARF number.
const DwflUnwinder::Numbers& numbers_of(Machine machine) {
  static const DwflUnwinder::Numbers kX86_64 = {
      8, 7, {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8}, {}};
  static const DwflUnwinder::Numbers kX86 = {4, 7, {0, 2, 3, 1, 7, 6, 4, 5, 8}, {}};
  // x0 to x30 and sp; the pc has no DWARF number.
  static const DwflUnwinder::Numbers kAarch64 = {
      8,
      31,
      {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
      32};
  switch (machine) {
    case Machine::x86: return kX86;
    case Machine::aarch64: return kAarch64;
    default: return kX86_64;
  }
}

constexpr Address page(Address address) noexcept { return address & ~Address{0xfff}; }

const LoadSegment* segment_at(const Module& module, const Region& region) {
  for (const LoadSegment& segment : module.segments()) {
    const bool begins_in_region = segment.offset < region.offset + region.range.size;
    if (segment.is_executable && begins_in_region &&
        region.offset < segment.offset + segment.file_size) {
      return &segment;
    }
  }
  return nullptr;
}

}  // namespace

DwflUnwinder::~DwflUnwinder() {
  for (auto& [key, space] : spaces_) ::dwfl_end(space.dwfl);
  shared_elves().clear();
  for (auto& [key, file] : files_) ::elf_end(file.elf);
}

int DwflUnwinder::find_elf(Dwfl_Module*, void**, const char* name, Dwarf_Addr, char** file_name,
                           Elf** elf) {
  const auto found = shared_elves().find(name);
  if (found == shared_elves().end()) return -1;
  *file_name = ::strdup(name);
  *elf = ::elf_begin(-1, ELF_C_READ, found->second);
  return -1;
}

int DwflUnwinder::find_no_debug(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*,
                                const char*, GElf_Word, char**) {
  return -1;
}

pid_t DwflUnwinder::next_thread(Dwfl*, void* space, void** thread) {
  if (*thread != nullptr) return 0;
  *thread = space;
  return static_cast<Space*>(space)->sample->tid;
}

bool DwflUnwinder::get_thread(Dwfl*, pid_t, void* space, void** thread) {
  *thread = space;
  return true;
}

bool DwflUnwinder::read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* space) {
  const Space& known = *static_cast<Space*>(space);
  const test::RecordedUser& user = *known.sample;
  const std::size_t size = known.numbers->word;
  const std::uint64_t at = address - user.registers.values[known.numbers->sp];
  if (at >= user.stack.size() || user.stack.size() - at < size) return false;
  *result = 0;
  std::memcpy(result, user.stack.data() + at, size);
  return true;
}

bool DwflUnwinder::set_registers(Dwfl_Thread* thread, void* space) {
  const Space& known = *static_cast<Space*>(space);
  const UserRegisters& sampled = known.sample->registers;
  std::array<Dwarf_Word, kMaxNumbers> values{};
  const std::vector<unsigned>& of_dwarf = known.numbers->of_dwarf;
  for (std::size_t i = 0; i < of_dwarf.size(); ++i) values[i] = sampled.values[of_dwarf[i]];
  if (!::dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(of_dwarf.size()),
                                     values.data()))
    return false;
  if (known.numbers->pc)
    ::dwfl_thread_state_register_pc(thread, sampled.values[*known.numbers->pc]);
  return true;
}

DwflUnwinder::File& DwflUnwinder::file_of(const std::shared_ptr<const Module>& module) {
  File& file = files_[module.get()];
  if (file.elf != nullptr) return file;
  file.module = module;
  // Uses the bytes in memory: no descriptor, no reading.
  const std::string_view bytes = module->bytes();
  file.elf = ::elf_memory(const_cast<char*>(bytes.data()), bytes.size());
  shared_elves()[name_of(*module)] = file.elf;
  return file;
}

void DwflUnwinder::report(Space& space, const Region& region,
                          const std::shared_ptr<const Module>& module) {
  const LoadSegment* const segment = segment_at(*module, region);
  if (segment == nullptr) return;
  file_of(module);
  const Address bias =
      region.range.begin - (segment->range.begin + (region.offset - segment->offset));
  Address begin = UINT64_MAX;
  Address end = 0;
  for (const LoadSegment& one : module->segments()) {
    begin = std::min(begin, page(one.range.begin));
    end = std::max(end, one.range.begin + one.range.size);
  }
  ::dwfl_report_module(space.dwfl, name_of(*module).c_str(), bias + begin,
                       page(bias + end + 0xfff));
}

void DwflUnwinder::prepare(const test::RecordedUser& user, const ModuleOf& module_of) {
  static const Dwfl_Callbacks kCallbacks = {find_elf, find_no_debug, nullptr, nullptr};
  static const Dwfl_Thread_Callbacks kThreads = {next_thread,   get_thread, read_memory,
                                                 set_registers, nullptr,    nullptr};
  Space& space = spaces_[user.space.get()];
  if (space.dwfl != nullptr) return;
  space.numbers = &numbers_of(user.registers.machine);
  space.dwfl = ::dwfl_begin(&kCallbacks);
  ::dwfl_report_begin(space.dwfl);
  Elf* any = nullptr;
  std::set<const Module*> reported;
  for (const Region& region : user.space->regions()) {
    if (!region.access.execute) continue;
    const auto module = module_of(region);
    if (module == nullptr || !reported.insert(module.get()).second) continue;
    report(space, region, module);
    any = file_of(module).elf;
  }
  ::dwfl_report_end(space.dwfl, nullptr, nullptr);
  ::dwfl_attach_state(space.dwfl, any, user.pid, &kThreads, &space);
}

std::size_t DwflUnwinder::unwind(const test::RecordedUser& user) {
  Space& space = spaces_[user.space.get()];
  space.sample = &user;
  std::size_t frames = 0;
  const auto count = [](Dwfl_Frame* frame, void* counter) {
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    ::dwfl_frame_pc(frame, &pc, &is_activation);
    ++*static_cast<std::size_t*>(counter);
    return static_cast<int>(DWARF_CB_OK);
  };
  ::dwfl_getthread_frames(space.dwfl, user.tid, count, &frames);
  return frames;
}

}  // namespace perfmap::bench
