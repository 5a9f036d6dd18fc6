// SPDX-License-Identifier: MIT
#include <Zydis/Zydis.h>
#include <algorithm>
#include <array>
#include <bit>
#include <capstone/capstone.h>
#include <charconv>
#include <elf.h>
#include <set>
#include <span>

#include "base/hex_bytes.hpp"
#include "module/shared_library.hpp"
#include "perfmap/profile/annotate.hpp"

namespace perfmap {

/// Decodes instructions of a machine with a library.
struct InstructionDecoder {
  virtual ~InstructionDecoder() = default;
  /// False if the library has another interface.
  virtual bool start(const SharedLibrary& library, bool is_64) noexcept = 0;
  /// Sets text and target of the first instruction of `code`; no text if it is unknown. Returns its
  /// size.
  virtual std::size_t decode(std::string_view code, Address address) = 0;

  std::string text;
  std::optional<Address> target;
};

namespace {

/// At least as long as any instruction: x86 has up to 15 bytes.
constexpr std::size_t kMaxInstruction = 16;

bool is_x86(const CodeMachine& machine) noexcept {
  // An ELF file of x32 has 32-bit addresses and 64-bit code.
  return machine.order == std::endian::little &&
         (machine.elf == EM_X86_64 || (machine.elf == EM_386 && !machine.is_64));
}

bool is_arm(const CodeMachine& machine) noexcept {
  return machine == CodeMachine{EM_AARCH64, true, std::endian::little};
}

/// Bytes that are no instruction, as an assembler takes them.
std::string data_text(std::string_view bytes) {
  std::string text = ".byte";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += (i == 0 ? " 0x" : ", 0x") + hex_of_bytes(bytes.substr(i, 1));
  }
  return text;
}

// Zydis prints AT&T syntax with Intel's names, without the * of indirect jumps, and with the size
// of each operand in memory. The functions below make of it nearly what objdump prints.

/// Each of Intel's names before AT&T's; also of conditions, in names such as "jz".
constexpr std::array<std::string_view, 24> kNames = {
    "z",   "e",    "nz",   "ne",   "nb",   "ae",   "nbe", "a",    "nl",  "ge",   "nle", "g",
    "cbw", "cbtw", "cwde", "cwtl", "cdqe", "cltq", "cwd", "cwtd", "cdq", "cltd", "cqo", "cqto"};

using Operands = std::span<const ZydisDecodedOperand>;

/// The suffix for the operand in memory. `forced` is Zydis's: b, w, l or q if it has such a size.
std::string_view suffix_of(const ZydisDecodedInstruction& instruction, Operands operands,
                           std::string_view name, std::string_view forced) noexcept {
  if (instruction.meta.isa_ext == ZYDIS_ISA_EXT_X87) {
    const bool is_integer = name.starts_with("fi");
    if (forced == "l") return is_integer ? "l" : "s";
    if (forced == "q") return is_integer ? "ll" : "l";
    const bool is_long = std::ranges::count(operands, ZYDIS_ELEMENT_TYPE_FLOAT80,
                                            &ZydisDecodedOperand::element_type) > 0;
    return is_long && operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? "t" : "";
  }
  // Of SSE and later, only the width of an integer is not in the name.
  const bool is_sized = instruction.meta.isa_ext == ZYDIS_ISA_EXT_BASE || name == "crc32" ||
                        name.find("si2s") != name.npos;
  return is_sized && instruction.meta.category != ZYDIS_CATEGORY_SEMAPHORE ? forced : "";
}

std::string att_name(const ZydisDecodedInstruction& instruction, Operands operands,
                     std::string_view name, std::string_view forced) {
  if (instruction.raw.imm[0].size == 64 || instruction.raw.disp.size == 64) return "movabs";
  const auto category = instruction.meta.category;
  if (category == ZYDIS_CATEGORY_STRINGOP && name.ends_with('d')) {
    return std::string(name.substr(0, name.size() - 1)) + "l";
  }
  if (name == "movzx" || name.starts_with("movsx")) {  // from one size to another
    const auto letter = [&](const auto& operand) {
      return "bwlq"[std::bit_width(operand.size) - 4];
    };
    return std::string(name.substr(0, 4)) + letter(operands[1]) + letter(operands[0]);
  }
  for (const std::string_view prefix : {"", "j", "set", "cmov"}) {
    for (std::size_t i = 0; i < kNames.size(); i += 2) {
      if (name.starts_with(prefix) && name.substr(prefix.size()) == kNames[i]) {
        return std::string(prefix).append(kNames[i + 1]);
      }
    }
  }
  return std::string(name).append(suffix_of(instruction, operands, name, forced));
}

struct X86 final : InstructionDecoder {
  decltype(&ZydisDecoderDecodeInstruction) decode_instruction = nullptr;
  decltype(&ZydisDecoderDecodeOperands) decode_operands = nullptr;
  decltype(&ZydisFormatterFormatInstruction) format = nullptr;
  decltype(&ZydisMnemonicGetString) name_of = nullptr;
  ZydisDecoder decoder;
  ZydisFormatter formatter;
  ZydisDecoderContext context;
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  bool start(const SharedLibrary& library, bool is_64) noexcept override;
  std::size_t decode(std::string_view code, Address address) override;
  std::size_t unknown_size(std::string_view code) noexcept;
  bool is_known(std::string_view code) noexcept {
    return ZYAN_SUCCESS(
        decode_instruction(&decoder, &context, code.data(), code.size(), &instruction));
  }
};

bool X86::start(const SharedLibrary& library, bool is_64) noexcept {
  decltype(&ZydisDecoderInit) init_decoder = nullptr;
  decltype(&ZydisFormatterInit) init_formatter = nullptr;
  decltype(&ZydisFormatterSetProperty) set = nullptr;
  const bool is_found = library.find("ZydisDecoderInit", init_decoder) &&
                        library.find("ZydisFormatterInit", init_formatter) &&
                        library.find("ZydisFormatterSetProperty", set) &&
                        library.find("ZydisDecoderDecodeInstruction", decode_instruction) &&
                        library.find("ZydisDecoderDecodeOperands", decode_operands) &&
                        library.find("ZydisFormatterFormatInstruction", format) &&
                        library.find("ZydisMnemonicGetString", name_of);
  if (!is_found) return false;
  init_decoder(&decoder, is_64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
               is_64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  init_formatter(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
  set(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_TRUE);
  set(&formatter, ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE);
  set(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  set(&formatter, ZYDIS_FORMATTER_PROP_IMM_SIGNEDNESS, ZYDIS_SIGNEDNESS_UNSIGNED);
  for (const auto padding : {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                             ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING}) {
    set(&formatter, padding, ZYDIS_PADDING_DISABLED);
  }
  return true;
}

std::size_t X86::decode(std::string_view code, Address address) {
  if (!is_known(code)) return unknown_size(code);
  decode_operands(&decoder, &context, &instruction, operands.data(), instruction.operand_count);
  const auto category = instruction.meta.category;
  // The register of a NOP is a part of its opcode.
  if (category == ZYDIS_CATEGORY_WIDENOP) instruction.operand_count_visible = 1;
  const std::uint8_t count = instruction.operand_count_visible;
  std::array<char, 256> buffer{};
  format(&formatter, &instruction, operands.data(), count, buffer.data(), buffer.size(), address,
         nullptr);
  text = buffer.data();
  const std::string_view name = name_of(instruction.mnemonic);
  const std::size_t begin = text.find(name);  // after prefixes
  const std::size_t suffix = begin + name.size();
  const std::size_t end = std::min(text.find(' ', suffix), text.size());
  const bool is_jump = category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_UNCOND_BR;
  const bool is_immediate = count > 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  if (is_immediate && operands[0].imm.is_relative) {
    target = address + instruction.length + operands[0].imm.value.u;
    if (decoder.machine_mode == ZYDIS_MACHINE_MODE_LEGACY_32) *target &= UINT32_MAX;
  } else if (is_jump && count > 0 && !is_immediate) {
    text.insert(end + 1, "*");
  }
  text.replace(begin, end - begin,
               att_name(instruction, Operands(operands).first(count), name,
                        text.substr(suffix, end - suffix)));
  return instruction.length;
}

/// Instructions that are newer than Zydis have opcodes of several bytes, or a VEX or EVEX prefix.
/// These have one form: the bytes of a ModRM follow the opcode, and an immediate in some maps.
std::size_t X86::unknown_size(std::string_view code) noexcept {
  const auto& raw = instruction.raw;
  const auto map = instruction.opcode_map;
  std::size_t at = 0;  // of the opcode
  switch (instruction.encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_EVEX: at = raw.evex.offset + 4u; break;
    case ZYDIS_INSTRUCTION_ENCODING_VEX: at = std::size_t{raw.vex.offset} + raw.vex.size; break;
    default:
      if (map == ZYDIS_OPCODE_MAP_DEFAULT) return 1;
      // Zydis has read up to the opcode or the ModRM.
      at = (raw.modrm.offset == 0 ? instruction.length : raw.modrm.offset) - 1u;
  }
  if (at >= code.size()) return 1;
  constexpr std::string_view kWithImmediate = "\x70\x71\x72\x73\xc2\xc4\xc5\xc6";
  const bool has_immediate =
      map == ZYDIS_OPCODE_MAP_0F3A ||
      (map == ZYDIS_OPCODE_MAP_0F && kWithImmediate.find(code[at]) != kWithImmediate.npos);
  // TEST of a byte takes each ModRM.
  std::string same(code.substr(at));
  same[0] = '\x84';
  if (!is_known(same)) return 1;
  const std::size_t size = at + instruction.length + (has_immediate ? 1 : 0);
  return size <= code.size() ? size : 1;
}

/// The last operand of a jump or a call if it is an address, such as that of "x0, #0x8".
std::optional<Address> arm_target(std::string_view mnemonic, std::string_view operands) noexcept {
  // Prefixes of the names of all direct jumps and calls; see Arm's manual.
  const bool is_jump =
      mnemonic.starts_with('b') || mnemonic.starts_with("cb") || mnemonic.starts_with("tb");
  const std::size_t number = operands.rfind("#0x");
  if (!is_jump || number == operands.npos) return std::nullopt;
  Address target = 0;
  const auto read =
      std::from_chars(operands.data() + number + 3, operands.data() + operands.size(), target, 16);
  return read.ec == std::errc() ? std::optional(target) : std::nullopt;
}

struct Arm final : InstructionDecoder {
  ~Arm() override {
    if (instruction != nullptr) free(instruction, 1);
    if (handle != 0) close(&handle);
  }

  decltype(&cs_disasm_iter) next = nullptr;
  decltype(&cs_free) free = nullptr;
  decltype(&cs_close) close = nullptr;
  csh handle = 0;
  cs_insn* instruction = nullptr;

  bool start(const SharedLibrary& library, bool is_64) noexcept override;
  std::size_t decode(std::string_view code, Address address) override;
};

bool Arm::start(const SharedLibrary& library, bool /*is_64*/) noexcept {
  decltype(&cs_open) open = nullptr;
  decltype(&cs_malloc) allocate = nullptr;
  const bool is_started = library.find("cs_open", open) && library.find("cs_malloc", allocate) &&
                          library.find("cs_disasm_iter", next) && library.find("cs_free", free) &&
                          library.find("cs_close", close) &&
                          open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle) == CS_ERR_OK;
  if (is_started) instruction = allocate(handle);
  return instruction != nullptr;
}

std::size_t Arm::decode(std::string_view code, Address address) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
  const std::size_t size = std::min<std::size_t>(4, code.size());
  std::size_t left = size;
  if (!next(handle, &bytes, &left, &address, instruction)) return size;
  text = instruction->mnemonic;
  if (instruction->op_str[0] != '\0') text.append(" ").append(instruction->op_str);
  target = arm_target(instruction->mnemonic, instruction->op_str);
  return size;
}

}  // namespace

Disassembler::Disassembler(std::unique_ptr<InstructionDecoder> decoder) noexcept
    : decoder_(std::move(decoder)) {}
Disassembler::Disassembler(Disassembler&&) noexcept = default;
Disassembler& Disassembler::operator=(Disassembler&&) noexcept = default;
Disassembler::~Disassembler() = default;

bool Disassembler::supports(const CodeMachine& machine) noexcept {
  return is_x86(machine) || is_arm(machine);
}

Result<Disassembler> Disassembler::open(const CodeMachine& machine) {
  if (!supports(machine)) {
    return Failure(Error::unsupported("only code of x86-64, i386 and aarch64 can be disassembled"));
  }
  // Structures differ between versions of the libraries, so only those of the headers will do.
  const std::string zydis = std::to_string(ZYDIS_VERSION_MAJOR(ZYDIS_VERSION)) + "." +
                            std::to_string(ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
  const std::string capstone = std::to_string(CS_API_MAJOR);
  const std::string file = is_x86(machine) ? "libZydis.so." + zydis : "libcapstone.so." + capstone;
  const Result<SharedLibrary> library =
      SharedLibrary::open(file, is_x86(machine) ? "libzydis" + zydis : "libcapstone" + capstone);
  if (!library) return failure(library);
  std::unique_ptr<InstructionDecoder> decoder = std::make_unique<Arm>();
  if (is_x86(machine)) decoder = std::make_unique<X86>();
  if (!decoder->start(*library, machine.elf != EM_386)) {
    return Failure(Error::unsupported(file + " cannot be used"));
  }
  return Disassembler(std::move(decoder));
}

void Disassembler::read(std::string_view code, Address address,
                        const std::function<void(const Instruction&)>& visit,
                        std::span<const CodeSamples> samples) const {
  constexpr std::size_t kMaxAhead = 4096;
  std::set<std::uint64_t> targets;  // offsets, ahead
  // Bytes of a mapped file may change meanwhile, so those of an instruction are copied first.
  std::array<char, kMaxInstruction> window{};
  for (std::size_t at = 0; at < code.size();) {
    const std::string_view copied(window.data(), code.copy(window.data(), window.size(), at));
    decoder_->text.clear();
    decoder_->target.reset();
    std::uint64_t size = decoder_->decode(copied, address + at);
    const bool is_valid = !decoder_->text.empty();
    if (!is_valid) {
      const auto target = targets.upper_bound(at);
      if (target != targets.end()) size = std::min(size, *target - at);
      const auto sample = std::ranges::find_if(
          std::ranges::upper_bound(samples, at, {}, &CodeSamples::offset), samples.end(),
          [&](const CodeSamples& one) { return one.self != 0 || one.offset >= at + size; });
      if (sample != samples.end()) size = std::min(size, sample->offset - at);
      decoder_->text = data_text(copied.substr(0, size));
    } else if (decoder_->target && *decoder_->target - address < code.size() &&
               targets.size() < kMaxAhead) {
      targets.insert(*decoder_->target - address);
    }
    visit({at, code.substr(at, size), decoder_->text, is_valid, decoder_->target});
    at += size;
    targets.erase(targets.begin(), targets.upper_bound(at - 1));
  }
}

}  // namespace perfmap
