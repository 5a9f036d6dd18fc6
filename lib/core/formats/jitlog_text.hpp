#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace perfmap {

/// Sections of a PYPYLOG as they are written: see JitlogWriter.

/// Appends `name` as it is written.
void append_jitlog_name(std::string& out, std::string_view name);
/// Whether it is written as it is.
bool is_jitlog_name(std::string_view name);

/// "jit-profile-enter", which makes lines of
struct JitlogCategory {
  std::string_view opening;  ///< "] {jit-profile-enter\n"
  std::string_view closing;  ///< "] jit-profile-enter}\n"
};
inline constexpr JitlogCategory kJitlogEnter = {"] {jit-profile-enter\n", "] jit-profile-enter}\n"};
inline constexpr JitlogCategory kJitlogExit = {"] {jit-profile-exit\n", "] jit-profile-exit}\n"};
inline constexpr JitlogCategory kJitlogClock = {"] {jit-profile-clock\n", "] jit-profile-clock}\n"};

/// How many bytes a section with that payload has at most.
constexpr std::size_t most_jitlog_section(std::size_t payload, std::size_t prefix) noexcept {
  constexpr std::size_t kTickLine = 1 + 16 + kJitlogEnter.opening.size();
  return 3 * prefix + 2 * kTickLine + payload + 1;
}

/// Writes a section whose lines begin with `prefix`, and answers with its end. There is room.
char* write_jitlog_section(char* out, const JitlogCategory& category, std::uint64_t tick,
                           std::string_view payload, std::string_view prefix) noexcept;

/// Whether `text`, the beginning of a file, is that of a PYPYLOG: a tick, perhaps behind the number
/// of a thread, that opens a section.
bool begins_as_jitlog(std::string_view text) noexcept;

}  // namespace perfmap
