// SPDX-License-Identifier: MIT
#include <optional>
#include <vector>

#include "capi/handles.hpp"
#include "perfmap/index.hpp"
#include "perfmap/input.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/map.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/timeline.hpp"

using namespace perfmap::capi;

namespace {

/// Compressed data and other formats would parse as maps of garbage.
perfmap::Error wrong_kind(const std::string& name, perfmap::SourceKind kind) {
  return perfmap::Error::unsupported(name + " is " + std::string(to_string(kind)) +
                                     " data, not a perf map");
}

perfmap_status hand_out(perfmap::Result<perfmap::Input> input, perfmap::Map::Options options,
                        perfmap_map** out, perfmap_error* error) {
  if (!input) return report(input.error(), error);
  const perfmap::SourceKind kind = perfmap::detect_kind(input->text());
  if (kind != perfmap::SourceKind::perf_map) return report(wrong_kind(input->name(), kind), error);
  *out = new perfmap_map{perfmap::Map(*std::move(input), options)};
  return PERFMAP_OK;
}

}  // namespace

perfmap_status perfmap_map_open(const char* path, perfmap_map** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (path == nullptr) return invalid("path: NULL", error);
    const perfmap::StreamCheck check =
        [name = std::string(path), is_map = perfmap::check_map_start()](
            std::string_view begin) -> perfmap::Result<perfmap::StreamStart> {
      const perfmap::SourceKind kind = perfmap::detect_kind(begin);
      if (kind == perfmap::SourceKind::perf_map) return is_map(begin);
      return perfmap::Failure(wrong_kind(name, kind));
    };
    perfmap::OpenPolicy policy;
    policy.check_start = &check;
    return hand_out(perfmap::Input::open(path, policy), {}, out, error);
  });
}

perfmap_status perfmap_map_open_pid(int32_t pid, perfmap_map** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (pid <= 0) {
      const std::string message = std::to_string(pid) + " is not a process ID";
      return report(perfmap::Error::invalid(message), error);
    }
    return hand_out(perfmap::find_process_map(pid), {.growing = perfmap::process_lives(pid)}, out,
                    error);
  });
}

perfmap_status perfmap_map_from_memory(const char* text, size_t size, perfmap_map** out,
                                       perfmap_error* error) {
  return guard(error, [&] {
    if (text == nullptr && size != 0) return invalid("text: NULL", error);
    std::string copy(text == nullptr ? "" : text, size);
    return hand_out(perfmap::Input::from_text(std::move(copy), "memory"), {}, out, error);
  });
}

void perfmap_map_free(perfmap_map* map) { delete map; }

perfmap_status perfmap_map_next(const perfmap_map* map, uint64_t* offset, perfmap_entry* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const std::string_view text = map->map.text();
  if (*offset != 0 && *offset < text.size() && text[*offset - 1] != '\n') {
    const std::size_t newline = text.find('\n', *offset);
    *offset = newline == std::string_view::npos ? text.size() : newline + 1;
  }
  while (*offset < text.size()) {
    const uint64_t start = *offset;
    const std::size_t newline = text.find('\n', start);
    *offset = newline == std::string_view::npos ? text.size() : newline + 1;
    if (const auto entry = map->map.entry_at(start)) {
      copy_out(to_c(*entry, 0), out);
      return PERFMAP_OK;
    }
  }
  return PERFMAP_E_NOT_FOUND;
}

int perfmap_map_was_truncated(const perfmap_map* map) {
  return map->map.input().was_truncated() ? 1 : 0;
}

uint64_t perfmap_map_line_number(const perfmap_map* map, uint64_t offset) {
  uint64_t line = 0;
  guard(nullptr, [&] {
    line = map->map.line_number(offset);
    return PERFMAP_OK;
  });
  return line;
}

perfmap_status perfmap_map_lint(const perfmap_map* map, size_t most_per_rule,
                                int (*visit)(const perfmap_finding* finding, void* context),
                                void* context, perfmap_error* error) {
  return guard(error, [&] {
    perfmap::Diagnostics problems(most_per_rule);
    perfmap::lint(map->map, problems);
    for (const perfmap::Diagnostic& one : problems.items()) {
      const perfmap_finding finding{sizeof finding,
                                    one.rule->id.data(),
                                    static_cast<int32_t>(one.rule->severity),
                                    one.rule->fix == perfmap::Fix::safe ? 1 : 0,
                                    one.where.line,
                                    one.where.column,
                                    one.where.offset,
                                    one.message.c_str()};
      if (visit(&finding, context) != 0) break;
    }
    return PERFMAP_OK;
  });
}

struct perfmap_index {
  perfmap::Index index;
};

namespace {

constexpr std::size_t kMaxMaps = 65535;

/// Checks the range, because a C caller can pass any number; false: INVALID_ARGUMENT.
bool to_cpp(int32_t overlap, perfmap::Overlap& out) {
  if (overlap < PERFMAP_OVERLAP_LAST || overlap > PERFMAP_OVERLAP_PERF) return false;
  out = static_cast<perfmap::Overlap>(overlap);
  return true;
}

}  // namespace

perfmap_status perfmap_index_new(const perfmap_map* const* maps, size_t count, int32_t overlap,
                                 perfmap_index** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Overlap policy{};
    if (!to_cpp(overlap, policy)) return invalid("overlap: no such policy", error);
    if (count > kMaxMaps) return invalid("count: more than 65535 maps", error);
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
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const perfmap::EntryRef hit = index->index.find(address);
  const auto entry = hit ? index->index.entry(hit) : std::nullopt;
  if (!entry) return PERFMAP_E_NOT_FOUND;
  copy_out(to_c(*entry, hit.map()), out);
  return PERFMAP_OK;
}

size_t perfmap_index_find_batch(const perfmap_index* index, const uint64_t* addresses, size_t count,
                                perfmap_entry* out) {
  if (count != 0 && !perfmap::capi::is_complete(out)) return 0;
  constexpr size_t kBlock = 256;
  perfmap::EntryRef hits[kBlock];
  std::optional<perfmap::Entry> entries[kBlock];
  size_t found = 0;
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t block = std::min(kBlock, count - done);
    index->index.find_all({addresses + done, block}, {hits, block});
    index->index.entries({hits, block}, {entries, block});
    for (size_t i = 0; i < block; ++i) {
      const std::optional<perfmap::Entry>& entry = entries[i];
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
  return guard(
      error,
      [&]() -> perfmap_status {
        perfmap::Overlap policy{};
        if (!to_cpp(overlap, policy)) return invalid("overlap: no such policy", error);
        if (policy == perfmap::Overlap::perf) return invalid("overlap: PERF needs an index", error);
        std::vector<perfmap::EntryRef> hits(count);
        perfmap::Diagnostics ignored(1);
        perfmap::find_by_scan({&map->map, 1}, policy, {addresses, count}, hits, {}, ignored);
        *found = 0;
        for (size_t i = 0; i < count; ++i) {
          const auto entry = hits[i] ? perfmap::entry_of({&map->map, 1}, hits[i]) : std::nullopt;
          *found += entry ? 1 : 0;
          copy_out(entry ? to_c(*entry, 0) : perfmap_entry{}, &out[i]);
        }
        return PERFMAP_OK;
      },
      count == 0 ? nullptr : out);
}

perfmap_status perfmap_index_write(perfmap_index* index, const char* path, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (path == nullptr) return invalid("path: NULL", error);
    if (index->index.overlap() == perfmap::Overlap::perf) {
      return invalid(
          "index: its overlap policy is PERF, which cannot be written as a map without overlaps",
          error);
    }
    perfmap::Result<perfmap::OutputFile> out = perfmap::OutputFile::replace(path);
    if (!out) return report(out.error(), error);
    perfmap::write_portable(index->index.compact(), *out);
    return report(out->commit(), error);
  });
}

void perfmap_name_decode(const char* name, size_t size, perfmap_name* out) {
  if (!perfmap::capi::is_complete(out)) return;
  const std::string_view raw(name, size);
  perfmap_name answer{0, "", "", name, size, nullptr, 0, 0, 0};
  // If there is no memory for the chain of inlined functions, the complete name is returned.
  perfmap::capi::guard(nullptr, [&] {
    const perfmap::DecodedName decoded = perfmap::decode_name(raw);
    answer.runtime = perfmap::to_string(decoded.runtime).data();
    if (!decoded.tier.empty()) answer.tier = decoded.tier.data();
    lend(decoded.function, answer.function, answer.function_size);
    if (!decoded.file.empty()) lend(decoded.file, answer.file, answer.file_size);
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

struct perfmap_timeline {
  perfmap::Timeline timeline;
  std::optional<perfmap::SourceLines> lines;  // created with the first query for lines
};

namespace {

std::optional<perfmap::LoadRecord> load_at(const perfmap::Timeline& timeline,
                                           std::uint64_t offset) noexcept {
  const auto record = timeline.dump().record_at(offset);
  return record ? perfmap::decode_load(*record) : std::nullopt;
}

perfmap_code to_c(const perfmap::CodeAt& code, const perfmap::LoadRecord& load) noexcept {
  perfmap_code out{};
  out.start = code.range.begin;
  out.size = code.range.size;
  lend(load.name, out.name, out.name_size);
  out.since = code.since;
  out.until = code.until;
  out.offset = code.load;
  out.index = load.code_index;
  out.bytes = load.code.empty() ? nullptr : load.code.data();
  return out;
}

}  // namespace

perfmap_status perfmap_timeline_open(const char* path, perfmap_timeline** out,
                                     perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (path == nullptr) return invalid("path: NULL", error);
    const std::string name = path;
    const perfmap::StreamCheck check =
        [name](std::string_view begin) -> perfmap::Result<perfmap::StreamStart> {
      const perfmap::SourceKind kind = perfmap::detect_kind(begin);
      if (kind == perfmap::SourceKind::jitdump) return perfmap::StreamStart::accepted;
      return perfmap::Failure(perfmap::Error::unsupported(
          name + " is not a jitdump; it looks like a " + std::string(to_string(kind))));
    };
    perfmap::OpenPolicy policy;
    policy.check_start = &check;
    perfmap::Result<perfmap::Input> input = perfmap::Input::open(name, policy);
    if (!input) return report(input.error(), error);
    const auto fits = input->text().empty() ? perfmap::StreamStart::accepted : check(input->text());
    if (!fits) return report(fits.error(), error);
    perfmap::Diagnostics ignored(1);
    perfmap::Jitdump dump(*std::move(input), {.growing = true});
    *out = new perfmap_timeline{perfmap::Timeline(std::move(dump), ignored), {}};
    return PERFMAP_OK;
  });
}

void perfmap_timeline_free(perfmap_timeline* timeline) { delete timeline; }

perfmap_status perfmap_timeline_find(const perfmap_timeline* timeline, uint64_t address,
                                     uint64_t time, perfmap_code* out) {
  if (!perfmap::capi::is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const auto code = timeline->timeline.find(address, time);
  const auto load = code ? load_at(timeline->timeline, code->load) : std::nullopt;
  if (!load) return PERFMAP_E_NOT_FOUND;
  copy_out(to_c(*code, *load), out);
  return PERFMAP_OK;
}

perfmap_status perfmap_timeline_line(perfmap_timeline* timeline, const perfmap_code* code,
                                     uint64_t address, const char** file, size_t* file_size,
                                     int32_t* line, perfmap_error* error) {
  return guard(
      error,
      [&]() -> perfmap_status {
        const perfmap_code asked = copy_in(code);
        const auto load = load_at(timeline->timeline, asked.offset);
        if (!load) return PERFMAP_E_NOT_FOUND;
        if (!timeline->lines) timeline->lines.emplace(timeline->timeline.dump());
        const perfmap::CodeLine* const found = perfmap::line_at(
            timeline->lines->of(asked.offset), load->range.begin + (address - asked.start));
        if (found == nullptr) return PERFMAP_E_NOT_FOUND;
        lend(found->file, *file, *file_size);
        *line = found->line;
        return PERFMAP_OK;
      },
      code);
}

perfmap_status perfmap_timeline_refresh(perfmap_timeline* timeline, int* changed,
                                        perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    perfmap::Diagnostics ignored(1);
    const perfmap::Result<perfmap::Growth> growth = timeline->timeline.refresh(ignored);
    if (!growth) return report(growth.error(), error);
    if (*growth != perfmap::Growth::unchanged) timeline->lines.reset();
    *changed = static_cast<int>(*growth);
    return PERFMAP_OK;
  });
}
