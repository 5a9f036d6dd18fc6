// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <capstone/capstone.h>
#include <charconv>
#include <cstdio>
#include <elf.h>

#include "module/shared_library.hpp"
#include "perfmap/profile/annotate.hpp"

namespace perfmap {
namespace {

struct Supported {
  CodeMachine machine;
  cs_arch arch;
  cs_mode mode;
  std::size_t step;  ///< the smallest instruction
};

// An ELF file of x32 has 32-bit addresses and 64-bit code.
constexpr std::array kSupported = {
    Supported{{EM_X86_64, true, std::endian::little}, CS_ARCH_X86, CS_MODE_64, 1},
    Supported{{EM_X86_64, false, std::endian::little}, CS_ARCH_X86, CS_MODE_64, 1},
    Supported{{EM_386, false, std::endian::little}, CS_ARCH_X86, CS_MODE_32, 1},
    Supported{{EM_AARCH64, true, std::endian::little}, CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, 4},
};

const Supported* find_supported(const CodeMachine& machine) noexcept {
  const auto* const found =
      std::ranges::find_if(kSupported, [&](const auto& one) { return one.machine == machine; });
  return found == kSupported.end() ? nullptr : found;
}

/// The layout of cs_insn differs between major versions, so only the one of the header will do.
const std::string kMajor = std::to_string(CS_API_MAJOR);

/// At least as long as any instruction: x86 has up to 15 bytes.
constexpr std::size_t kMaxInstruction = 16;

/// Bytes that are no instruction, as an assembler takes them.
std::string_view data_text(std::string_view bytes, std::array<char, 64>& buffer) noexcept {
  std::size_t size = 0;
  for (const char byte : bytes) {
    const int written = std::snprintf(buffer.data() + size, buffer.size() - size, "%s0x%02x",
                                      size == 0 ? ".byte " : ", ",
                                      static_cast<unsigned>(static_cast<unsigned char>(byte)));
    size += static_cast<std::size_t>(written);
  }
  return {buffer.data(), size};
}

/// The operand of a jump or a call if it is an address: "0x1005", on aarch64 the last of "x0,
/// #0x8".
std::optional<Address> target_of(std::string_view mnemonic, std::string_view operands) noexcept {
  // Prefixes of the names of all direct jumps and calls; see the manuals of Intel and Arm.
  constexpr std::array<std::string_view, 7> kX86 = {"j",      "call",  "ljmp",    "loop",
                                                    "xbegin", "bnd j", "bnd call"};
  constexpr std::array<std::string_view, 3> kArm = {"b", "cb", "tb"};
  const auto begins = [&](const auto& names) {
    return std::ranges::any_of(names, [&](auto name) { return mnemonic.starts_with(name); });
  };
  const std::size_t hash = operands.rfind('#');
  const bool is_arm = hash != std::string_view::npos;
  if (!(is_arm ? begins(kArm) : begins(kX86))) return std::nullopt;
  std::string_view number = is_arm ? operands.substr(hash + 1) : operands;
  if (!number.starts_with("0x")) return std::nullopt;
  number.remove_prefix(2);
  Address target = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), target, 16);
  const bool is_whole = read.ec == std::errc() && read.ptr == number.data() + number.size();
  return is_whole ? std::optional(target) : std::nullopt;
}

}  // namespace

struct Disassembler::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (instruction != nullptr) free(instruction, 1);
    if (handle != 0) close(&handle);
  }

  decltype(&cs_version) version = nullptr;
  decltype(&cs_open) open = nullptr;
  decltype(&cs_option) option = nullptr;
  decltype(&cs_malloc) allocate = nullptr;
  decltype(&cs_disasm_iter) next = nullptr;
  decltype(&cs_free) free = nullptr;
  decltype(&cs_close) close = nullptr;
  csh handle = 0;
  cs_insn* instruction = nullptr;
  std::size_t step = 1;

  bool load(const SharedLibrary& library) noexcept;
  bool start(const Supported& machine) noexcept;
};

bool Disassembler::State::load(const SharedLibrary& library) noexcept {
  return library.find("cs_version", version) && library.find("cs_open", open) &&
         library.find("cs_option", option) && library.find("cs_malloc", allocate) &&
         library.find("cs_disasm_iter", next) && library.find("cs_free", free) &&
         library.find("cs_close", close);
}

bool Disassembler::State::start(const Supported& machine) noexcept {
  int major = 0;
  int minor = 0;
  version(&major, &minor);  // sets nothing if one of them is null
  if (major != CS_API_MAJOR || open(machine.arch, machine.mode, &handle) != CS_ERR_OK) return false;
  if (machine.arch == CS_ARCH_X86) option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
  step = machine.step;
  instruction = allocate(handle);
  return instruction != nullptr;
}

Disassembler::Disassembler(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Disassembler::Disassembler(Disassembler&&) noexcept = default;
Disassembler& Disassembler::operator=(Disassembler&&) noexcept = default;
Disassembler::~Disassembler() = default;

bool Disassembler::supports(const CodeMachine& machine) noexcept {
  return find_supported(machine) != nullptr;
}

Result<Disassembler> Disassembler::open(const CodeMachine& machine) {
  const Supported* const supported = find_supported(machine);
  if (supported == nullptr) {
    return Failure(
        {Errc::unsupported, "only code of x86-64, i386 and aarch64 can be disassembled", 0, {}});
  }
  const std::string file = "libcapstone.so." + kMajor;
  const Result<SharedLibrary> library = SharedLibrary::open(file, "libcapstone" + kMajor);
  if (!library) return Failure(library.error());
  auto state = std::make_unique<State>();
  if (!state->load(*library) || !state->start(*supported)) {
    return Failure({Errc::unsupported, file + " cannot be used", 0, {}});
  }
  return Disassembler(std::move(state));
}

void Disassembler::read(std::string_view code, Address address,
                        const std::function<void(const Instruction&)>& visit) const {
  // Bytes of a mapped file may change meanwhile, so those of an instruction are copied first.
  std::array<char, kMaxInstruction> window{};
  std::array<char, 64> buffer{};
  std::string text;
  std::size_t at = 0;
  while (at < code.size()) {
    const std::string_view copied(window.data(), code.copy(window.data(), window.size(), at));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(copied.data());
    std::size_t left = copied.size();
    std::uint64_t next_address = address + at;
    const cs_insn& found = *state_->instruction;
    // The size is Capstone's; it is not trusted either.
    const bool is_valid =
        state_->next(state_->handle, &bytes, &left, &next_address, state_->instruction) &&
        found.size > 0 && found.size <= copied.size();
    const std::size_t size = is_valid ? found.size : std::min(state_->step, copied.size());
    if (is_valid) {
      text = found.mnemonic;
      if (found.op_str[0] != '\0') text.append(" ").append(found.op_str);
    } else {
      text = data_text(copied.substr(0, size), buffer);
    }
    const auto target = is_valid ? target_of(found.mnemonic, found.op_str) : std::nullopt;
    visit({at, code.substr(at, size), text, is_valid, target});
    at += size;
  }
}

}  // namespace perfmap
