#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace perfmap {

/// The machine code of a trampoline, and how to unwind through it: `f(a, b, c, evaluator)` calls
/// `evaluator(a, b, c)`, which finds its arguments where they are, from a frame of its own.
///
/// Known for every machine on every machine, so that a test on one may check all of them.
struct TrampolineCode {
  std::span<const unsigned char> instructions;
  std::span<const unsigned char> cie;  ///< behind length and id, without padding
  std::span<const unsigned char> fde;  ///< its instructions, without padding
  /// Those that hold in the middle of the call: all that an exception needs.
  std::span<const unsigned char> calling;

  /// Behind the instructions come bytes that never run. In a jitdump they hold a number, because
  /// perf takes DSOs with equal build-ids for one, and some of its releases make build-ids of the
  /// code alone: all trampolines would have the first one's name.
  static constexpr std::size_t kMark = 8;
  std::size_t size() const noexcept { return instructions.size() + kMark; }
};

inline constexpr std::size_t kTrampolineStride = 128;  ///< from one trampoline to the next

/// One trampoline as it lies in memory: code, then, where perf expects them, .eh_frame and
/// .eh_frame_hdr. All pointers in it are relative, so that every copy has the same bytes.
struct TrampolineImage {
  std::array<char, kTrampolineStride> bytes{};
  std::size_t code_size = 0;
  std::size_t frame_begin = 0;  ///< the first multiple of 8 behind the code
  std::size_t frame_size = 0;
  std::size_t header_size = 0;

  std::size_t mapped_size() const noexcept { return bytes.size() - frame_begin; }
};

TrampolineImage image_of(const TrampolineCode& code);

/// An .eh_frame for exceptions that pass through any trampoline in `size` bytes at `begin`.
std::string exception_frame(const TrampolineCode& code, const void* begin, std::size_t size);

const TrampolineCode& x86_64_trampoline() noexcept;
const TrampolineCode& aarch64_trampoline() noexcept;
/// This machine's; nullptr where none is known.
const TrampolineCode* host_trampoline() noexcept;

}  // namespace perfmap
