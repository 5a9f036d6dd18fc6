#include <cstdint>
#include <cstdlib>
#include <memory>

#include "modules/demangle.hpp"

// Or libiberty.h declares basename() in another way than <string.h> does.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace perfmap {
namespace {

struct Free {
  void operator()(char* text) const noexcept { std::free(text); }
};

}  // namespace

/// libiberty bounds nothing: it calls itself for each level of a type, and a back reference (Q) may
/// stand for all that is before it.
std::optional<std::string> demangle_d(std::string_view name) {
  constexpr std::size_t kMostMangled = 1024;
  constexpr std::uint64_t kMostExpanded = std::uint64_t{1} << 20;
  std::uint64_t bytes = name.size();
  for (const char c : name) bytes *= c == 'Q' && bytes <= kMostExpanded ? 2 : 1;
  if (name.size() > kMostMangled || bytes > kMostExpanded) return std::nullopt;
  const std::unique_ptr<char, Free> text(dlang_demangle(std::string(name).c_str(), 0));
  if (text == nullptr || std::string_view(text.get()) == name) return std::nullopt;
  return std::string(text.get());
}

}  // namespace perfmap
