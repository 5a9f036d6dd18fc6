// SPDX-License-Identifier: MIT
// Compiled with -mavx2 where the compiler has it; search() decides at run time whether to use it.
#if defined(__AVX2__)

#include "map/search_body.hpp"

namespace perfmap {

extern const Search kSearchAvx2;
const Search kSearchAvx2 = {search_one, search_one_of, search_group};

}  // namespace perfmap

#endif
