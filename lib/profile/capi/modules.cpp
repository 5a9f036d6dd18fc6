// SPDX-License-Identifier: MIT
#include <string>

#include "capi/handles.hpp"

using namespace perfmap::capi;

namespace {

std::vector<std::string> directories_of(const char* joined) {
  std::vector<std::string> directories;
  std::string_view rest = joined == nullptr ? "" : joined;
  while (!rest.empty()) {
    const std::string_view first = rest.substr(0, rest.find(':'));
    if (!first.empty()) directories.emplace_back(first);
    rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  }
  return directories;
}

}  // namespace

perfmap_status perfmap_module_cache_begin(const perfmap_module_cache_options* options,
                                          perfmap_module_cache** out, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_module_cache_options asked = copy_in(options);
        perfmap::ModuleCacheOptions taken;
        if (asked.most_bytes != 0) taken.max_bytes = asked.most_bytes;
        taken.debug_directories = directories_of(asked.debug_directories);
        *out = new perfmap_module_cache{perfmap::ModuleCache(std::move(taken))};
        return PERFMAP_OK;
      },
      options);
}

void perfmap_module_cache_end(perfmap_module_cache* cache) { delete cache; }

uint64_t perfmap_module_cache_opened(const perfmap_module_cache* cache) {
  return cache->cache.statistics().opened;
}

perfmap::ProcessTracker::OpenModule perfmap::capi::open_with(
    perfmap_open_module open, void* context, perfmap::ProcessTracker::OpenModule others) {
  return [open, context, others = std::move(others)](
             const perfmap::Region& region,
             const perfmap::ProcSource* process) -> perfmap::ModuleCache::Answer {
    if (region.file == nullptr) return Failure(Error::unsupported("no file"));
    perfmap_region shown = to_c(region);
    shown.struct_size = sizeof shown;
    perfmap_module* given = nullptr;
    const perfmap_status status =
        open(process != nullptr ? process->pid() : 0, &shown, &given, context);
    if (status == PERFMAP_OK && given != nullptr) {
      const std::unique_ptr<perfmap_module> taken(given);
      return taken->module;
    }
    if (status != PERFMAP_OK && status != PERFMAP_E_NOT_FOUND) {
      return Failure(Error::told(static_cast<Errc>(status),
                                 region.file->name + ": " + perfmap_status_text(status)));
    }
    if (others) return others(region, process);
    return Failure(
        Error::cannot("open", region.file->name, Reason::deleted, "the program has no such file"));
  };
}

perfmap::ProcessTracker::OpenModule perfmap::capi::open_from(ModuleCache& cache,
                                                             const char* symfs) {
  if (symfs == nullptr) return open_here(cache);
  return [below = open_below(cache, symfs)](const Region& region, const ProcSource*) {
    return below(region, nullptr);  // the pids are those of another machine
  };
}

namespace {

/// A handle, or the error.
perfmap_status give(perfmap::ModuleCache::Answer answer, perfmap_module** out,
                    perfmap_error* error) {
  if (!answer) return report(answer.error(), error);
  *out = new perfmap_module{*std::move(answer)};
  return PERFMAP_OK;
}

std::string name_or_none(const char* name) { return name != nullptr ? name : ""; }

}  // namespace

perfmap_status perfmap_module_open(perfmap_module_cache* cache, const char* path,
                                   perfmap_module** out, perfmap_error* error) {
  return guard(error, [&] {
    if (path == nullptr) return invalid("path: NULL", error);
    return give(cache->cache.open(path), out, error);
  });
}

perfmap_status perfmap_module_open_descriptor(perfmap_module_cache* cache, int fd, const char* name,
                                              perfmap_module** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    auto input = perfmap::Input::from_descriptor(
        fd, name_or_none(name), {.regular_only = true, .bounded = true, .keep_descriptor = false});
    if (!input) return report(input.error(), error);
    return give(cache->cache.open(*std::move(input)), out, error);
  });
}

perfmap_status perfmap_module_from_memory(perfmap_module_cache* cache, const void* bytes,
                                          size_t size, const char* name, perfmap_module** out,
                                          perfmap_error* error) {
  return guard(error, [&] {
    if (bytes == nullptr && size != 0) return invalid("bytes: NULL", error);
    std::string copy(bytes == nullptr ? "" : static_cast<const char*>(bytes), size);
    return give(cache->cache.open(perfmap::Input::from_text(std::move(copy), name_or_none(name))),
                out, error);
  });
}

perfmap_status perfmap_module_find_build_id(perfmap_module_cache* cache, const void* build_id,
                                            size_t size, perfmap_module** out,
                                            perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (build_id == nullptr && size != 0) return invalid("build_id: NULL", error);
    auto known = cache->cache.find_build_id({static_cast<const char*>(build_id), size});
    if (known == nullptr) return PERFMAP_E_NOT_FOUND;
    *out = new perfmap_module{std::move(known)};
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_module_copy(const perfmap_module* module, perfmap_module** out,
                                   perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    *out = new perfmap_module(*module);
    return PERFMAP_OK;
  });
}

uint64_t perfmap_module_id(const perfmap_module* module) {
  return reinterpret_cast<std::uintptr_t>(module->module.get());
}

perfmap_status perfmap_tracker_find_elf(perfmap_tracker* tracker, int32_t pid, uint64_t address,
                                        uint64_t time, perfmap_module** out, uint64_t* vaddr,
                                        perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto space = tracker->tracker.at(pid, time);
    const perfmap::Region* const region = space != nullptr ? space->find(address) : nullptr;
    if (region == nullptr) return PERFMAP_E_NOT_FOUND;
    auto module = tracker->tracker.module_of(pid, *region);
    if (!module) return report(module.error(), error);
    const std::uint64_t offset = address - region->range.begin + region->offset;
    const auto found = (*module)->file_offset_to_vaddr(offset);
    if (vaddr != nullptr) *vaddr = found.value_or(0);
    *out = new perfmap_module{*std::move(module)};
    return PERFMAP_OK;
  });
}

void perfmap_module_end(perfmap_module* module) { delete module; }

void perfmap_module_get_facts(const perfmap_module* module, perfmap_module_facts* out) {
  if (!perfmap::capi::is_complete(out)) return;
  const perfmap::Module& from = *module->module;
  perfmap_module_facts facts{};
  lend(from.path(), facts.path, facts.path_size);
  lend(from.build_id(), facts.build_id, facts.build_id_size);
  lend(from.bytes(), facts.bytes, facts.bytes_size);
  facts.machine = from.machine();
  facts.type = from.type();
  copy_out(facts, out);
}

perfmap_status perfmap_module_find_symbol(const perfmap_module* module, uint64_t vaddr,
                                          perfmap_symbol* out, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const auto symbol = module->module->find_symbol(vaddr);
        if (!symbol) return PERFMAP_E_NOT_FOUND;
        const std::string_view demangled = module->module->demangled(*symbol);
        copy_out(perfmap_symbol{0, symbol->range.begin, symbol->range.size, symbol->name.data(),
                                symbol->name.size(), demangled.data(), demangled.size()},
                 out);
        return PERFMAP_OK;
      },
      out);
}

namespace {

std::string_view source_of(const perfmap::AddressName& name) {
  if (name.entry) return name.sources->resolver().input(name.entry->source).name();
  return name.mapped != nullptr ? std::string_view(name.mapped->name) : std::string_view();
}

perfmap_source_frame to_c(const perfmap::SourceFrame& frame) noexcept {
  return {frame.function.data(),
          frame.function.size(),
          frame.file.data(),
          frame.file.size(),
          frame.line,
          frame.column};
}

constexpr auto bit(perfmap::Doubt one) { return static_cast<int>(one); }
static_assert(bit(perfmap::Doubt::damaged_record) == PERFMAP_DOUBT_DAMAGED_RECORD &&
              bit(perfmap::Doubt::clamped_range) == PERFMAP_DOUBT_CLAMPED_RANGE &&
              bit(perfmap::Doubt::reused_address) == PERFMAP_DOUBT_REUSED_ADDRESS &&
              bit(perfmap::Doubt::guessed_owner) == PERFMAP_DOUBT_GUESSED_OWNER &&
              bit(perfmap::Doubt::guessed_call) == PERFMAP_DOUBT_GUESSED_CALL &&
              bit(perfmap::Doubt::scanned_frame) == PERFMAP_DOUBT_SCANNED_FRAME &&
              bit(perfmap::Doubt::stitched_frame) == PERFMAP_DOUBT_STITCHED_FRAME &&
              bit(perfmap::Doubt::remapped_memory) == PERFMAP_DOUBT_REMAPPED_MEMORY &&
              bit(perfmap::Doubt::unrecorded_memory) == PERFMAP_DOUBT_UNRECORDED_MEMORY);

/// Views of what the tracker keeps for the caller.
perfmap_address_name to_c(const perfmap_tracker& tracker) {
  const perfmap::AddressName& from = tracker.named;
  const std::string_view source = source_of(from);
  perfmap_address_name out{};
  lend(from.name, out.name, out.name_size);
  out.begin = from.range ? from.range->begin : 0;
  out.size = from.range ? from.range->size : 0;
  lend(source, out.source, out.source_size);
  out.is_jit = from.entry ? 1 : 0;
  out.why = static_cast<int32_t>(from.why);
  lend(tracker.frames, out.frames, out.frame_count);
  out.doubts = from.doubts.bits;
  return out;
}

}  // namespace

perfmap_status perfmap_tracker_name(perfmap_tracker* tracker, int32_t pid, uint64_t address,
                                    uint64_t time, uint64_t source_time, int32_t detail,
                                    perfmap_address_name* out, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        if (detail < PERFMAP_DETAIL_SYMBOLS || detail > PERFMAP_DETAIL_INLINES) {
          return perfmap::capi::report(perfmap::Error::invalid("detail: no such detail"), error);
        }
        perfmap::Symbolizer symbolizer(tracker->tracker,
                                       {static_cast<perfmap::Symbolizer::Detail>(detail), true, 1});
        tracker->named = symbolizer.find(pid, {address, source_time}, time);
        tracker->frames.clear();
        for (const perfmap::SourceFrame& frame : tracker->named.frames) {
          tracker->frames.push_back(to_c(frame));
        }
        copy_out(to_c(*tracker), out);
        return tracker->named.has_name() ? PERFMAP_OK : PERFMAP_E_NOT_FOUND;
      },
      out);
}
