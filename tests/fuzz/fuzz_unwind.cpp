// SPDX-License-Identifier: MIT
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/machines.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "support/cfi_bytes.hpp"
#include "support/elf_bytes.hpp"

namespace {

using namespace perfmap;

constexpr Address kCode = 0x40'1000;
constexpr Address kJit = 0x70'0000;
constexpr Address kStack = 0x7ffe'0000;
constexpr std::uint64_t kSize = 0x1000;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Consumes the input from its start; zeros when it is used up.
struct Taker {
  std::string_view left;

  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes && !left.empty(); ++i, left.remove_prefix(1))
      value = value << 8 | static_cast<unsigned char>(left.front());
    return value;
  }
  std::string_view bytes(std::size_t max) {
    const std::string_view taken = left.substr(0, max);
    left.remove_prefix(taken.size());
    return taken;
  }
  /// Usually near something; two bytes select it.
  std::uint64_t address() {
    const std::uint64_t value = number(2);
    const std::uint64_t offset = value & 0x1fff;
    switch (value >> 13) {
      case 0: return offset;
      case 1: return kJit + offset;
      case 2: return number(8);
      case 3:
      case 4: return kStack + offset;
      default: return kCode + offset;
    }
  }
};

std::shared_ptr<const Module> module_with(const Target& target, std::string_view frames,
                                          std::string_view code) {
  std::string text(code);
  text.resize(kSize, '\xc3');
  test::ElfBytes elf(target, 0x1000, std::move(text));
  const bool is_arm = target.machine == EM_ARM;
  elf.section(
      {is_arm ? ".ARM.exidx" : ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x8000, std::string(frames)});
  elf.symbols({{"f", 0x1400, 0x300}, {"g", 0x1500, 0x100}});
  auto module = Module::open(Input::from_text(elf.text(), "/bin/program"));
  require(module.has_value());
  return *module;
}

void map(ProcessTracker& tracker, std::string_view name, Address begin, std::uint64_t offset) {
  MmapEvent event;
  event.pid = 7;
  event.range = {begin, kSize};
  event.offset = offset;
  event.name = name;
  event.access = {true, false, true, false};
  tracker.on_mmap(event);
}

bool is_code(Address pc) { return pc - kCode <= kSize || pc - kJit <= kSize; }

void check(const UserSample& sample, const UnwindSpace& space, const Unwinder::Options& options) {
  std::vector<UnwoundFrame> frames;
  Unwinder unwinder(options);
  const StackEnd end = unwinder.unwind(sample, space, frames);
  require(frames.size() <= options.max_frames);
  require(sample.is_stack_full || end != StackEnd::truncated);
  for (std::size_t i = 1; i < frames.size(); ++i) {
    require(is_code(frames[i].pc));
    require(options.scan || frames[i].source != FrameSource::scan);
  }
  // What the unwinder has cached must not change the result.
  std::vector<UnwoundFrame> again;
  require(unwinder.unwind(sample, space, again) == end && again == frames);
}

}  // namespace

constexpr std::array<Target, 5> kTargets = {{
    test::kX86,
    test::kArm,
    {std::endian::little, false, EM_386, 0},
    {std::endian::little, true, EM_RISCV, 0},
    {std::endian::little, false, EM_ARM, 0},
}};

/// For any registers, stack, frames and code, unwound frames are in code, and unwinding ends. The
/// first byte contains options and the machine, the next two the size of .eh_frame, or of
/// .ARM.exidx.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Taker input{{reinterpret_cast<const char*>(data), size}};
  const std::uint64_t flags = input.number(1);
  const std::size_t rare = (flags & 16) != 0 ? input.number(1) % 3 : 0;
  const Target& target = kTargets[(flags & 16) != 0 ? 2 + rare : flags & 1];
  const MachineInfo& machine = *find_machine(target.machine);
  const std::string_view frames = input.bytes(input.number(2) % 1024);
  const std::string_view code = input.bytes(input.number(1));
  const auto module = module_with(target, frames, code);
  ProcessTracker tracker;
  map(tracker, "/bin/program", kCode, module->find_section(".text")->offset);
  map(tracker, "//anon", kJit, 0);
  UnwindSpace::Options options;
  options.open_module = [&](const Region& r) { return r.file->is_file() ? module : nullptr; };
  const auto space = UnwindSpace::make(*tracker.at(7), options);
  UserSample sample;
  sample.registers.machine = *machine_of(target.machine);
  sample.registers.mask = preferred_regs_mask(sample.registers.machine);
  for (std::uint64_t left = sample.registers.mask; left != 0; left &= left - 1)
    sample.registers.values[static_cast<std::size_t>(std::countr_zero(left))] = input.address();
  sample.registers.values[static_cast<std::size_t>(machine.perf_sp)] = kStack;
  std::vector<std::uint64_t> words;
  while (!input.left.empty()) words.push_back(input.address());
  // On the heap with nothing after it, so that a sanitizer notices reads beyond it.
  const std::size_t bytes = words.size() * 8 - (words.empty() ? 0 : flags >> 5);
  const std::unique_ptr<char[]> stack(new char[bytes]);
  if (bytes != 0) std::memcpy(stack.get(), words.data(), bytes);
  sample.stack = {stack.get(), bytes};
  sample.is_stack_full = (flags & 2) != 0;
  check(sample, *space, {64, (flags & 4) != 0, (flags & 8) != 0});
  return 0;
}
