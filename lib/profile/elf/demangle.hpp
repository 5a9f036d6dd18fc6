// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/lazy.hpp"
#include "perfmap/profile/module.hpp"

// Otherwise libiberty.h declares basename() differently from <string.h>.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace perfmap {

struct FreeText {
  void operator()(char* text) const noexcept { std::free(text); }
};
using LibibertyText = std::unique_ptr<char, FreeText>;

inline bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
inline bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Appends a character, which must not be a surrogate and must be below 0x110000.
void append_utf8(std::string& out, std::uint32_t point);

/// Decodes names that are not ASCII, in Rust's form: Punycode with '_' before its last part.
/// Nothing if it is invalid, or has more than some hundred characters. O(n^2).
/// Source: RFC 3492, "Punycode", sections 5 and 6.2.
std::optional<std::string> decode_punycode(std::string_view text);

/// Rust's legacy names, the default until 2025: the Itanium form for plain paths, with a hash as
/// the last part. Nothing for other names.
std::optional<std::string> demangle_rust_legacy(std::string_view name);

/// OCaml's names: "caml", the module's path with "__" (before 5.1) or "." between its parts, and
/// "$2b" for characters that assemblers do not accept. Nothing for other names.
std::optional<std::string> demangle_ocaml(std::string_view name);

/// Whether libiberty can demangle this C++ name within bounds. A few hundred bytes can expand to
/// gigabytes, because each reference may stand for everything before it. O(n log n).
bool is_reasonable_cxx_name(std::string_view name);

/// False for names that demangle() leaves alone, also for D's: libiberty's parser of them
/// backtracks without a limit, so some names of 100 bytes would take years. Does not read the whole
/// name.
bool may_be_mangled(std::string_view name) noexcept;

/// Demangled names of symbols by id, each made once and cached. Thread-safe; a cached name is found
/// without a lock.
class DemangledNames {
 public:
  DemangledNames() = default;
  DemangledNames(const DemangledNames&) = delete;
  DemangledNames& operator=(const DemangledNames&) = delete;
  ~DemangledNames() {
    for (std::uint32_t i = 0; names_ != nullptr && i < count_; ++i) delete names_[i].load();
  }

  /// `count` is the same in every call, and larger than `id`.
  std::string_view of(std::uint32_t id, std::string_view name, std::uint32_t count) {
    if (!may_be_mangled(name)) return name;
    once_.run([this, count] {
      names_ = std::make_unique<std::atomic<const std::string*>[]>(count);
      count_ = count;
    });
    if (id >= count_) return name;
    std::atomic<const std::string*>& kept = names_[id];
    if (const std::string* const known = kept.load(std::memory_order_acquire)) return *known;
    // A copy, because the file's bytes may change while they are read.
    const std::string mangled(name);
    auto made = std::make_unique<const std::string>(demangle(mangled).value_or(mangled));
    const std::string* expected = nullptr;
    if (!kept.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
      return *expected;
    }
    bytes_.fetch_add(sizeof(std::string) + made->capacity(), std::memory_order_relaxed);
    return *made.release();
  }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  Once once_;
  std::unique_ptr<std::atomic<const std::string*>[]> names_;
  std::uint32_t count_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace perfmap
