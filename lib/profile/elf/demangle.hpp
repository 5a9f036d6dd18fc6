#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/profile/module.hpp"

// Or libiberty.h declares basename() in another way than <string.h> does.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace perfmap {

struct FreeText {
  void operator()(char* text) const noexcept { std::free(text); }
};
using LibibertyText = std::unique_ptr<char, FreeText>;

/// Appends a character, which is no surrogate and below 0x110000.
void append_utf8(std::string& out, std::uint32_t point);

/// Names that are not ASCII, as Rust writes them: Punycode with '_' before its last part. Nothing
/// where it is none, or has more than some hundred characters. O(n^2).
/// Source: RFC 3492, "Punycode", sections 5 and 6.2.
std::optional<std::string> decode_punycode(std::string_view text);

/// Rust's names, as they were until 2025 and may still be: Itanium's form for plain paths, with a
/// hash as the last part. Such names only.
std::optional<std::string> demangle_rust_legacy(std::string_view name);

/// OCaml's names: "caml", the module's path with "__" (before 5.1) or "." between its parts, and
/// "$2b" for a character that no assembler takes. Such names only.
std::optional<std::string> demangle_ocaml(std::string_view name);

/// D's names (libiberty).
std::optional<std::string> demangle_d(std::string_view name);

/// Whether libiberty may be let at this C++ name. A few hundred bytes can stand for gigabytes, as
/// every reference in it may stand for all that came before. O(n log n).
bool is_reasonable_cxx_name(std::string_view name);

/// False for names that demangle() leaves alone, without looking at all of them.
bool may_be_mangled(std::string_view name) noexcept;

/// Demangled names of symbols by their numbers, each made once and kept. May be used from several
/// threads; a name that is there is found without a lock.
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
    std::call_once(once_, [this, count] {
      names_ = std::make_unique<std::atomic<const std::string*>[]>(count);
      count_ = count;
    });
    if (id >= count_) return name;
    std::atomic<const std::string*>& kept = names_[id];
    if (const std::string* const known = kept.load(std::memory_order_acquire)) return *known;
    // A copy: the file's bytes may change while they are read.
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
  std::once_flag once_;
  std::unique_ptr<std::atomic<const std::string*>[]> names_;
  std::uint32_t count_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace perfmap
