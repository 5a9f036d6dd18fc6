#include "unwind/leaf.hpp"

#include <algorithm>
#include <cstring>

namespace perfmap {
namespace {

using namespace std::string_view_literals;

constexpr LeafFrame kNothingPushed{0, false, 8, std::nullopt, false};
constexpr LeafFrame kFramePointerPushed{8, false, 16, 0, false};

bool begins_with_mov_fp(std::string_view code) noexcept {
  return code.starts_with("\x48\x89\xe5"sv) || code.starts_with("\x48\x8b\xec"sv);
}

/// push %rbp; mov %rsp,%rbp, in either encoding.
bool is_prologue(std::string_view code) noexcept {
  return code.starts_with('\x55') && begins_with_mov_fp(code.substr(1));
}

bool has_prologue(std::string_view code) noexcept {
  constexpr std::size_t kNear = 48;
  for (std::size_t i = 0; i < std::min(code.size(), kNear); ++i) {
    if (is_prologue(code.substr(i))) return true;
  }
  return false;
}

/// A function may do some work before it sets up its frame, so the prologue may follow.
bool has_prologue_ahead(const CodeBytes& code) noexcept {
  constexpr std::uint64_t kFarFromBegin = 96;
  return code.offset && *code.offset < kFarFromBegin && has_prologue(code.after);
}

/// Padding between functions, or an instruction that ends the one before.
bool is_padding(std::string_view before) noexcept {
  return before.empty() || before.ends_with('\xcc') || before.ends_with('\x90') ||
         before.ends_with('\xc3') || before.ends_with('\0');
}

/// Entries of a PLT: jmp *GOT(%rip); push $n; jmp PLT0, with endbr64 or bnd prefixes.
std::optional<LeafFrame> plt_entry(const CodeBytes& code) noexcept {
  LeafFrame frame = kNothingPushed;
  frame.is_plt = true;
  std::string_view after = code.after;
  if (after.starts_with("\xf3\x0f\x1e\xfa"sv)) after.remove_prefix(4);
  if (after.starts_with('\xf2')) after.remove_prefix(1);
  if (after.starts_with("\xff\x25"sv) || after.starts_with('\x68')) return frame;
  const bool is_pushed = code.before.size() >= 5 && code.before[code.before.size() - 5] == '\x68';
  if (!is_pushed || !after.starts_with('\xe9')) return std::nullopt;
  frame.return_at = 8;
  frame.popped = 16;
  return frame;
}

std::uint32_t word_at(std::string_view code, std::size_t at) noexcept {
  std::uint32_t word = 0;
  if (at <= code.size() && code.size() - at >= sizeof word)
    std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

/// stp x29, x30, [sp, #-N]!
constexpr bool is_push_of_frame(std::uint32_t word) noexcept {
  return (word & 0xffe07fff) == 0xa9a07bfd;
}
constexpr std::uint64_t pushed_bytes(std::uint32_t word) noexcept {
  const auto scaled = static_cast<std::int32_t>(word << 10) >> 25;  // bits 15 to 21, signed
  return static_cast<std::uint64_t>(-scaled * 8);
}

}  // namespace

bool wants_offset_x86_64(const CodeBytes& code) noexcept {
  return is_padding(code.before) || has_prologue(code.after);
}

std::optional<LeafFrame> leaf_frame_x86_64(const CodeBytes& code) noexcept {
  const std::string_view after = code.after;
  if (code.offset == 0) return kNothingPushed;
  if (after.starts_with('\xc3') || after.starts_with('\xc2')) return kNothingPushed;
  if (after.starts_with("\x5d\xc3"sv) || after.starts_with("\x5d\xc2"sv))
    return kFramePointerPushed;
  if (is_prologue(after)) return kNothingPushed;
  if (code.before.ends_with('\x55') && begins_with_mov_fp(after)) return kFramePointerPushed;
  if (const auto plt = plt_entry(code)) return plt;
  if (has_prologue_ahead(code)) return kNothingPushed;
  // A map gives a function's begin but not its code; most functions push %rbp first.
  if (after.empty() && code.offset == 1) return kFramePointerPushed;
  return std::nullopt;
}

bool wants_offset_aarch64(const CodeBytes&) noexcept { return true; }

std::optional<LeafFrame> leaf_frame_aarch64(const CodeBytes& code) noexcept {
  constexpr std::uint32_t kReturn = 0xd65f03c0, kMoveFp = 0x910003fd;
  constexpr LeafFrame kLink{0, true, 0, std::nullopt, false};
  const std::uint32_t next = word_at(code.after, 0);
  if (code.offset == 0 || next == kReturn || is_push_of_frame(next)) return kLink;
  const std::uint32_t last =
      code.before.size() >= 4 ? word_at(code.before, code.before.size() - 4) : 0;
  if (next == kMoveFp && is_push_of_frame(last)) {
    return LeafFrame{8, false, pushed_bytes(last), 0, false};
  }
  for (std::size_t at = 4; code.offset && *code.offset < 32 && at < 32; at += 4) {
    if (word_at(code.after, at) == kReturn) break;
    if (is_push_of_frame(word_at(code.after, at))) return kLink;
  }
  return std::nullopt;
}

}  // namespace perfmap
