#include "capi/guard.hpp"
#include "perfmap/names.hpp"

void perfmap_name_decode(const char* name, size_t size, perfmap_name* out) {
  const std::string_view raw(name, size);
  perfmap_name answer{0, "", "", name, size, nullptr, 0, 0, 0};
  // Out of memory for a chain of inlined functions: the whole name is an answer, too.
  perfmap::capi::guard(nullptr, [&] {
    const perfmap::DecodedName decoded = perfmap::decode_name(raw);
    answer.runtime = perfmap::to_string(decoded.runtime).data();
    if (!decoded.tier.empty()) answer.tier = decoded.tier.data();
    answer.function = decoded.function.data();
    answer.function_size = decoded.function.size();
    if (!decoded.file.empty()) {
      answer.file = decoded.file.data();
      answer.file_size = decoded.file.size();
    }
    answer.line = decoded.line;
    answer.column = decoded.column;
    return PERFMAP_OK;
  });
  perfmap::capi::copy_out(answer, out);
}

size_t perfmap_name_inline_chain(const char* name, size_t size, perfmap_name_part* parts,
                                 size_t most) {
  std::size_t count = 0;
  perfmap::capi::guard(nullptr, [&] {
    const perfmap::DecodedName decoded = perfmap::decode_name({name, size});
    count = decoded.inline_chain.size();
    for (std::size_t i = 0; i < count && i < most; ++i) {
      parts[i] = {decoded.inline_chain[i].data(), decoded.inline_chain[i].size()};
    }
    return PERFMAP_OK;
  });
  return count;
}
