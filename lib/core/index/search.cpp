#include "index/search.hpp"

#include "index/search_body.hpp"

namespace perfmap {

#if defined(__x86_64__)
extern const Search kSearchAvx2;
#endif

const Search& search() noexcept {
  static constexpr Search kPlain = {search_one, search_group};
#if defined(__x86_64__)
  static const Search& best = __builtin_cpu_supports("avx2") != 0 ? kSearchAvx2 : kPlain;
  return best;
#else
  return kPlain;
#endif
}

}  // namespace perfmap
