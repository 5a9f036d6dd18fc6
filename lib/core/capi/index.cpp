#include "perfmap/index.hpp"

#include <vector>

#include "capi/guard.hpp"
#include "perfmap/merge.hpp"

using perfmap::capi::copy_out;
using perfmap::capi::guard;
using perfmap::capi::report;
using perfmap::capi::to_c;

struct perfmap_index {
  perfmap::Index index;
};

namespace {

constexpr std::size_t kMostMaps = 65535;

/// Out of the four, or INVALID_ARGUMENT: a C caller can pass any number.
bool to_cpp(int32_t overlap, perfmap::Overlap& out) {
  if (overlap < PERFMAP_OVERLAP_LAST || overlap > PERFMAP_OVERLAP_PERF) return false;
  out = static_cast<perfmap::Overlap>(overlap);
  return true;
}

perfmap_status invalid(const char* message, perfmap_error* error) {
  return report(perfmap::Error{perfmap::Errc::invalid_argument, message, 0, {}}, error);
}

}  // namespace

perfmap_status perfmap_index_new(const perfmap_map* const* maps, size_t count, int32_t overlap,
                                 perfmap_index** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Overlap policy{};
    if (!to_cpp(overlap, policy)) return invalid("no such overlap policy", error);
    if (count > kMostMaps) return invalid("more than 65535 maps", error);
    std::vector<perfmap::Map> copies;
    for (size_t i = 0; i < count; ++i) copies.push_back(maps[i]->map);
    perfmap::Diagnostics ignored(1);
    *out = new perfmap_index{perfmap::Index(std::move(copies), policy, ignored)};
    return PERFMAP_OK;
  });
}

void perfmap_index_free(perfmap_index* index) { delete index; }

perfmap_status perfmap_index_find(const perfmap_index* index, uint64_t address,
                                  perfmap_entry* out) {
  const perfmap::Hit hit = index->index.find(address);
  const auto entry = hit ? index->index.entry(hit) : std::nullopt;
  if (!entry) return PERFMAP_E_NOT_FOUND;
  copy_out(to_c(*entry, hit.map()), out);
  return PERFMAP_OK;
}

size_t perfmap_index_find_batch(const perfmap_index* index, const uint64_t* addresses, size_t count,
                                perfmap_entry* out) {
  constexpr size_t kBlock = 256;
  perfmap::Hit hits[kBlock];
  size_t found = 0;
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t block = std::min(kBlock, count - done);
    index->index.find_all({addresses + done, block}, {hits, block});
    for (size_t i = 0; i < block; ++i) {
      const auto entry = hits[i] ? index->index.entry(hits[i]) : std::nullopt;
      found += entry ? 1 : 0;
      copy_out(entry ? to_c(*entry, hits[i].map()) : perfmap_entry{}, &out[done + i]);
    }
  }
  return found;
}

perfmap_status perfmap_index_refresh(perfmap_index* index, int* changed, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Diagnostics ignored(1);
    const perfmap::Result<perfmap::Growth> growth = index->index.refresh(ignored);
    if (!growth) return report(growth.error(), error);
    *changed = static_cast<int>(*growth);
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_map_find_batch(const perfmap_map* map, int32_t overlap,
                                      const uint64_t* addresses, size_t count, perfmap_entry* out,
                                      size_t* found, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Overlap policy{};
    if (!to_cpp(overlap, policy) || policy == perfmap::Overlap::perf) {
      return invalid("this overlap policy needs an index", error);
    }
    std::vector<perfmap::Hit> hits(count);
    perfmap::Diagnostics ignored(1);
    perfmap::find_by_scan({&map->map, 1}, policy, {addresses, count}, hits, ignored);
    *found = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto entry = hits[i] ? perfmap::entry_of({&map->map, 1}, hits[i]) : std::nullopt;
      *found += entry ? 1 : 0;
      copy_out(entry ? to_c(*entry, 0) : perfmap_entry{}, &out[i]);
    }
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_index_write(perfmap_index* index, const char* path, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (index->index.overlap() == perfmap::Overlap::perf) {
      return invalid("perf's answers are no partition that could be written", error);
    }
    perfmap::Result<perfmap::OutputFile> out = perfmap::OutputFile::replace(path);
    if (!out) return report(out.error(), error);
    perfmap::write_portable(index->index.compact(), *out);
    return report(out->commit(), error);
  });
}
