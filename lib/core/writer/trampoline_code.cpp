#include "writer/trampoline_code.hpp"

#include <cstring>

namespace perfmap {
namespace {

// DW_CFA_* of DWARF 5, table 7.29; the two in capitals carry a number in their low six bits.
constexpr unsigned char kAdvance = 0x40;
constexpr unsigned char kOffset = 0x80;
constexpr unsigned char kRestore = 0xc0;
constexpr unsigned char kDefCfa = 0x0c;
constexpr unsigned char kDefCfaRegister = 0x0d;
constexpr unsigned char kDefCfaOffset = 0x0e;

constexpr unsigned char kPcrelSdata4 = 0x1b;
constexpr std::size_t kEncodingAt = 8;  // in both machines' CIEs

// endbr64, because the evaluator's caller jumps here through a pointer; a frame pointer, because
// most profilers follow those.
constexpr unsigned char kX86[] = {
    0xf3, 0x0f, 0x1e, 0xfa,  // endbr64
    0x55,                    // push %rbp
    0x48, 0x89, 0xe5,        // mov %rsp,%rbp
    0xff, 0xd1,              // call *%rcx
    0x5d,                    // pop %rbp
    0xc3,                    // ret
};
constexpr unsigned char kX86Rbp = 6;
constexpr unsigned char kX86Rsp = 7;
constexpr unsigned char kX86Return = 16;
constexpr unsigned char kX86Cie[] = {
    1, 'z', 'R', 0, 1, 0x78, kX86Return, 1, kPcrelSdata4, kDefCfa, kX86Rsp, 8, kOffset | kX86Return,
    1};
constexpr unsigned char kX86Fde[] = {kAdvance | 5,
                                     kDefCfaOffset,
                                     16,
                                     kOffset | kX86Rbp,
                                     2,  // behind push
                                     kAdvance | 3,
                                     kDefCfaRegister,
                                     kX86Rbp,  // behind mov
                                     kAdvance | 3,
                                     kDefCfa,
                                     kX86Rsp,
                                     8,
                                     kRestore | kX86Rbp};  // behind pop

constexpr unsigned char kX86Calling[] = {
    kDefCfa, kX86Rbp, 16, kOffset | kX86Rbp, 2, kOffset | kX86Return, 1};

constexpr unsigned char kArm[] = {
    0x5f, 0x24, 0x03, 0xd5,  // bti c (hint 34)
    0xfd, 0x7b, 0xbf, 0xa9,  // stp x29, x30, [sp, #-16]!
    0xfd, 0x03, 0x00, 0x91,  // mov x29, sp
    0x60, 0x00, 0x3f, 0xd6,  // blr x3
    0xfd, 0x7b, 0xc1, 0xa8,  // ldp x29, x30, [sp], #16
    0xc0, 0x03, 0x5f, 0xd6,  // ret
};
constexpr unsigned char kArmFrame = 29;
constexpr unsigned char kArmReturn = 30;
constexpr unsigned char kArmSp = 31;
// Advances count instructions: the code alignment is 4.
constexpr unsigned char kArmCie[] = {1,          'z', 'R',          0,       4,      0x78,
                                     kArmReturn, 1,   kPcrelSdata4, kDefCfa, kArmSp, 0};
constexpr unsigned char kArmFde[] = {kAdvance | 2,
                                     kDefCfaOffset,
                                     16,
                                     kOffset | kArmFrame,
                                     2,
                                     kOffset | kArmReturn,
                                     1,
                                     kAdvance | 1,
                                     kDefCfaRegister,
                                     kArmFrame,
                                     kAdvance | 2,
                                     kRestore | kArmReturn,
                                     kRestore | kArmFrame,
                                     kDefCfa,
                                     kArmSp,
                                     0};

constexpr unsigned char kArmCalling[] = {
    kDefCfa, kArmFrame, 16, kOffset | kArmFrame, 2, kOffset | kArmReturn, 1};

constexpr TrampolineCode kX86Code{kX86, kX86Cie, kX86Fde, kX86Calling};
constexpr TrampolineCode kArmCode{kArm, kArmCie, kArmFde, kArmCalling};

static_assert(kX86Cie[kEncodingAt] == kPcrelSdata4 && kArmCie[kEncodingAt] == kPcrelSdata4);

std::uint32_t padded(std::size_t size, std::size_t to) noexcept {
  return static_cast<std::uint32_t>((size + to - 1) / to * to);
}

/// Bytes one behind the other; what is skipped stays as it was, zero.
class Layout {
 public:
  explicit Layout(std::array<char, kTrampolineStride>& bytes) : bytes_(&bytes) {}
  std::uint32_t at() const noexcept { return static_cast<std::uint32_t>(at_); }
  void skip_to(std::size_t at) noexcept { at_ = at; }
  void u32(std::uint32_t value) noexcept { raw(&value, sizeof value); }
  void raw(const void* from, std::size_t size) noexcept {
    // Sizes are known when this is compiled; the unit test of the layout sees every copy.
    std::memcpy(bytes_->data() + at_, from, size);
    at_ += size;
  }

 private:
  std::array<char, kTrampolineStride>* bytes_;
  std::size_t at_ = 0;
};

}  // namespace

TrampolineImage image_of(const TrampolineCode& code) {
  TrampolineImage image;
  image.code_size = code.size();
  image.frame_begin = padded(image.code_size, 8);
  Layout out(image.bytes);
  out.raw(code.instructions.data(), code.instructions.size());

  const auto begin = static_cast<std::uint32_t>(image.frame_begin);
  const std::uint32_t cie_length = padded(4 + code.cie.size(), 4);
  const std::uint32_t fde_length = padded(13 + code.fde.size(), 4);
  const std::uint32_t fde = begin + 4 + cie_length;
  const std::uint32_t end = fde + 4 + fde_length;
  out.skip_to(begin);
  out.u32(cie_length);
  out.u32(0);
  out.raw(code.cie.data(), code.cie.size());
  out.skip_to(fde);
  out.u32(fde_length);
  out.u32(out.at() - begin);
  out.u32(0u - out.at());  // where the code begins, seen from here
  out.u32(static_cast<std::uint32_t>(code.instructions.size()));
  out.skip_to(out.at() + 1);  // no augmentation
  out.raw(code.fde.data(), code.fde.size());
  out.skip_to(end + 4);  // a length of 0 ends .eh_frame

  const std::uint32_t header = out.at();
  constexpr unsigned char kHeader[] = {1, kPcrelSdata4, 0x03, 0x3b};
  out.raw(kHeader, sizeof kHeader);
  out.u32(begin - out.at());
  out.u32(1);
  out.u32(0u - header);
  out.u32(fde - header);
  image.frame_size = header - begin;
  image.header_size = out.at() - header;
  return image;
}

/// One FDE for all of them, which only ever are in the middle of their call then. Its addresses are
/// absolute, as its place in memory is not known yet.
std::string exception_frame(const TrampolineCode& code, const void* begin, std::size_t size) {
  std::string out;
  const auto u32 = [&](std::size_t value) {
    const auto narrow = static_cast<std::uint32_t>(value);
    out.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  };
  const auto raw = [&](std::span<const unsigned char> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::size_t cie_length = padded(4 + code.cie.size(), 4);
  u32(cie_length);
  u32(0);
  raw(code.cie);
  out[8 + kEncodingAt] = 0;  // DW_EH_PE_absptr
  out.resize(4 + cie_length);
  const std::size_t fde_length = padded(4 + 2 * sizeof begin + 1 + code.calling.size(), 4);
  u32(fde_length);
  u32(out.size());
  out.append(reinterpret_cast<const char*>(&begin), sizeof begin);
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.push_back(0);
  raw(code.calling);
  out.resize(8 + cie_length + fde_length);
  u32(0);
  return out;
}

const TrampolineCode& x86_64_trampoline() noexcept { return kX86Code; }
const TrampolineCode& aarch64_trampoline() noexcept { return kArmCode; }

const TrampolineCode* host_trampoline() noexcept {
#if defined(__x86_64__) && defined(__LP64__)
  return &kX86Code;
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
  return &kArmCode;
#else
  return nullptr;
#endif
}

}  // namespace perfmap
