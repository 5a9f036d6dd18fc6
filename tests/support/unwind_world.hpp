// SPDX-License-Identifier: MIT
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/machines.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "support/catch.hpp"
#include "support/cfi_bytes.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::test {

/// perf's register numbers.
enum PerfRegister : unsigned {
  kRbx = 1,
  kRdx = 3,
  kRbp = 6,
  kRsp = 7,
  kRip = 8,
  kR12 = 20,
  kX29 = 29,
  kLr = 30,
  kArmSp = 31,
  kArmPc = 32,
};

/// A process with a file whose 4 KiB of code are at 0x401000 (0x1000 in the file), and memory of a
/// runtime at [0x700000, 0x710000).
class UnwindWorld {
 public:
  static constexpr Address kCode = 0x40'1000;
  static constexpr Address kJit = 0x70'0000;
  static constexpr Address kStack = 0x7ffe'0000;

  struct Shape {
    std::string frames = {};  ///< .eh_frame
    std::string code = {};    ///< its first bytes; NOPs follow
    std::vector<TestSymbol> symbols = {};
    Target target = kX86;
    std::string dump = {};  ///< bytes of a jitdump
    std::string map = {};   ///< text of a perf map
    bool is_go = false;     ///< has the note of Go's linker
    AddressRange plt = {};  ///< of its code, as vaddr
    std::string path = "/bin/program";
  };

  explicit UnwindWorld(Shape shape) : machine_(*machine_of(shape.target.machine)) {
    std::string code = shape.code;
    code.resize(0x1000, '\x90');
    ElfBytes elf(shape.target, 0x1000, std::move(code));
    if (!shape.frames.empty())
      elf.section({".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x8000, shape.frames});
    if (!shape.symbols.empty()) elf.symbols(shape.symbols);
    if (shape.is_go) elf.section({".note.go.buildid", SHT_NOTE, SHF_ALLOC, 0x9000, "note"});
    if (shape.plt.size != 0) {
      elf.section({".plt", SHT_PROGBITS, kCodeFlags, shape.plt.begin,
                   std::string(static_cast<std::size_t>(shape.plt.size), '\0')});
    }
    auto opened = Module::open(Input::from_text(elf.text(), shape.path));
    REQUIRE(opened);
    module_ = *std::move(opened);
    map(shape.path, kCode, 0x1000, module_->find_section(".text")->offset);
    map("//anon", kJit, 0x10000, 0);
    UnwindSpace::Options options;
    options.open_module = [&](const Region& region) {
      return region.file->is_file() ? module_ : nullptr;
    };
    std::vector<Map> maps;
    if (!shape.map.empty()) maps.emplace_back(Input::from_text(shape.map, "perf-7.map"));
    std::vector<Jitdump> dumps;
    if (!shape.dump.empty()) dumps.emplace_back(Input::from_text(shape.dump, "jit-7.dump"));
    options.jit = {std::make_shared<JitSources>(std::move(maps), std::move(dumps))};
    space_ = UnwindSpace::make(*tracker_.at(7), options);
  }

  const UnwindSpace& space() const { return *space_; }

  /// A thread in the file's or the runtime's code, with its complete stack.
  UserSample thread(Address pc, const std::vector<std::uint64_t>& stack) {
    const MachineInfo& machine = *find_machine(static_cast<std::uint32_t>(machine_));
    stack_.clear();
    for (const std::uint64_t word : stack)  // the tests' machines are little-endian
      stack_.append(reinterpret_cast<const char*>(&word), machine.is_32 ? 4 : 8);
    UserSample sample;
    sample.stack = stack_;
    sample.time = 100;
    UserRegisters& registers = sample.registers;
    registers.machine = machine_;
    registers.mask = preferred_regs_mask(machine_);
    registers.values[machine.perf_pc] = pc;
    registers.values[static_cast<std::size_t>(machine.perf_sp)] = kStack;
    return sample;
  }

  /// "leaf 401010, eh-cfi 401234+: root"; '+' marks return addresses.
  std::string unwound(const UserSample& sample, const Unwinder::Options& options = {}) {
    std::vector<UnwoundFrame> frames;
    const StackEnd end = Unwinder(options).unwind(sample, *space_, frames);
    std::string text;
    for (const UnwoundFrame& frame : frames) {
      char address[32];
      std::snprintf(address, sizeof address, " %llx", static_cast<unsigned long long>(frame.pc));
      text += (text.empty() ? "" : ", ") + std::string(to_string(frame.source)) + address +
              (frame.is_return ? "+" : "");
    }
    return text + ": " + std::string(to_string(end));
  }

 private:
  void map(std::string_view name, Address begin, std::uint64_t size, std::uint64_t offset) {
    MmapEvent event;
    event.pid = 7;
    event.time = 1;
    event.range = {begin, size};
    event.offset = offset;
    event.name = name;
    event.access = {true, false, true, false};
    tracker_.on_mmap(event);
  }

  Machine machine_;
  ProcessTracker tracker_;
  std::shared_ptr<const Module> module_;
  std::shared_ptr<const UnwindSpace> space_;
  std::string stack_;
};

/// Functions of 64 bytes each, starting at 0x1000, with different unwinding rules.
inline std::string frames_of_all_kinds() {
  using namespace std::string_literals;
  CfiBytes frames;
  frames.fde(0x1000, 0x40, "");                                         // CFA = rsp + 8
  frames.fde(0x1040, 0x40, "\x0e\x20\x83\x02\x86\x03"s);                // rsp + 32, rbx, rbp saved
  frames.fde(0x1080, 0x40, "\x0c\x06\x10\x86\x02"s);                    // rbp + 16
  frames.fde(0x10c0, 0x40, "\x0f\x03\x76\x78\x06\x10\x06\x02\x76\0"s);  // [rbp - 8]
  frames.fde(0x1100, 0x40, "\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"s);  // like ld's PLT
  frames.fde(0x1140, 0x40, "\x07\x10"s);                                            // no caller
  frames.fde(0x1180, 0x40, "\x14\x0c\x02\x0c\x07\x10"s);  // r12 = CFA - 16
  frames.fde(0x11c0, 0x40, "\x0e\x10\x09\x10\x01"s);      // the caller is in rdx
  frames.fde(0x1200, 0x40, "\x0c\x0c\x08"s);              // CFA = r12 + 8
  frames.fde(0x1240, 0x20, "\x86\x02"s);                  // rsp + 8, as if rbp were not popped yet
  frames.fde(0x1260, 0x10, "\x0e\0\x09\x10\x05"s);        // rsp, with the caller in rdi, like vfork
  CfiBytes signals({.letters = "zRS"});
  const std::string trampoline =
      "\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x06\x03\x77\xf8\0"s;
  signals.fde(0x1280, 0x10, trampoline);  // nothing before it, like musl
  signals.fde(0x12ff, 0x11, trampoline);  // starts one byte early, like glibc
  return frames.text() + signals.text();
}

}  // namespace perfmap::test
