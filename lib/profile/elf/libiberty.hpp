#pragma once

#include <cstdlib>
#include <memory>
#include <string>

// Or libiberty.h declares basename() in another way than <string.h> does.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace perfmap {

struct FreeText {
  void operator()(char* text) const noexcept { std::free(text); }
};
using LibibertyText = std::unique_ptr<char, FreeText>;

}  // namespace perfmap
