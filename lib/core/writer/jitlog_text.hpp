#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace perfmap {

/// Sections of a PYPYLOG as they are written: see JitlogWriter.

/// Appends `name` as it is written.
void append_jitlog_name(std::string& out, std::string_view name);

/// A few bytes that are copied as fast as a number: with what lies behind them.
template <std::size_t Max>
struct JitlogPiece {
  constexpr JitlogPiece() = default;
  constexpr explicit JitlogPiece(std::string_view given)
      : size(given.copy(bytes.data(), bytes.size())) {}
  constexpr std::string_view text() const noexcept { return {bytes.data(), size}; }

  std::array<char, Max> bytes{};
  std::size_t size = 0;
};

/// Which thread a line is of: "4294967295# ", or nothing.
using JitlogPrefix = JitlogPiece<16>;

struct JitlogCategory {
  JitlogPiece<32> opening;
  JitlogPiece<32> closing;
};
inline constexpr JitlogCategory kJitlogEnter{JitlogPiece<32>("] {jit-profile-enter\n"),
                                             JitlogPiece<32>("] jit-profile-enter}\n")};
inline constexpr JitlogCategory kJitlogExit{JitlogPiece<32>("] {jit-profile-exit\n"),
                                            JitlogPiece<32>("] jit-profile-exit}\n")};
inline constexpr JitlogCategory kJitlogClock{JitlogPiece<32>("] {jit-profile-clock\n"),
                                             JitlogPiece<32>("] jit-profile-clock}\n")};

/// How much room a section with that payload wants at most.
constexpr std::size_t room_for_jitlog_section(std::size_t payload) noexcept {
  constexpr std::size_t kLine =
      sizeof(JitlogPrefix::bytes) + 1 + 16 + sizeof(JitlogPiece<32>::bytes);
  return 3 * kLine + payload;
}

/// Writes a section, and answers with its end. Bytes behind that, within the room, may change.
char* write_jitlog_section(char* out, const JitlogCategory& category, std::uint64_t tick,
                           std::string_view payload, const JitlogPrefix& prefix) noexcept;

/// Whether `text`, the beginning of a file, is that of a PYPYLOG: a tick, perhaps behind the number
/// of a thread, that opens a section.
bool begins_as_jitlog(std::string_view text) noexcept;

}  // namespace perfmap
