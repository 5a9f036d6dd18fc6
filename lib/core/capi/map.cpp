#include "perfmap/map.hpp"

#include <vector>

#include "capi/guard.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/process_files.hpp"
#include "perfmap/source_kind.hpp"

using perfmap::capi::copy_out;
using perfmap::capi::guard;
using perfmap::capi::report;
using perfmap::capi::to_c;

const char* perfmap_version(void) { return PERFMAP_VERSION; }

const char* perfmap_status_text(perfmap_status status) {
  switch (status) {
    case PERFMAP_OK: return "done";
    case PERFMAP_E_IO: return "a system call failed";
    case PERFMAP_E_NOT_FOUND: return "not found";
    case PERFMAP_E_BAD_FORMAT: return "the input is malformed";
    case PERFMAP_E_UNSUPPORTED: return "a kind of input that is not taken here";
    case PERFMAP_E_INVALID_ARGUMENT: return "an argument has no meaning";
    case PERFMAP_E_REFUSED: return "a file that must not be trusted";
    case PERFMAP_E_TOO_LARGE: return "the input is too large";
    case PERFMAP_E_NO_MEMORY: return "out of memory";
    case PERFMAP_E_INTERNAL: break;
  }
  return "a bug in perfmap";
}

namespace {

/// Compressed data and other formats would be maps of nonsense.
perfmap_status refuse_kind(const perfmap::Input& input, perfmap::SourceKind kind,
                           perfmap_error* error) {
  const std::string message =
      input.name() + " holds " + std::string(to_string(kind)) + " data and is no perf map";
  return report(perfmap::Error{perfmap::Errc::unsupported, message, 0, {}}, error);
}

perfmap_status hand_out(perfmap::Result<perfmap::Input> input, perfmap::Map::Options options,
                        perfmap_map** out, perfmap_error* error) {
  if (!input) return report(input.error(), error);
  const perfmap::SourceKind kind = perfmap::detect_kind(input->text());
  if (kind != perfmap::SourceKind::perf_map) return refuse_kind(*input, kind, error);
  *out = new perfmap_map{perfmap::Map(*std::move(input), options)};
  return PERFMAP_OK;
}

}  // namespace

perfmap_status perfmap_map_open(const char* path, perfmap_map** out, perfmap_error* error) {
  return guard(error, [&] { return hand_out(perfmap::Input::open(path), {}, out, error); });
}

perfmap_status perfmap_map_open_pid(int32_t pid, perfmap_map** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (pid <= 0) {
      const std::string message = std::to_string(pid) + " is no process id";
      return report(perfmap::Error{perfmap::Errc::invalid_argument, message, 0, {}}, error);
    }
    return hand_out(perfmap::find_process_map(pid), {.growing = perfmap::process_lives(pid)}, out,
                    error);
  });
}

perfmap_status perfmap_map_from_memory(const char* text, size_t size, perfmap_map** out,
                                       perfmap_error* error) {
  return guard(error, [&] {
    return hand_out(perfmap::Input::from_text(std::string(text, size), "memory"), {}, out, error);
  });
}

void perfmap_map_free(perfmap_map* map) { delete map; }

perfmap_status perfmap_map_next(const perfmap_map* map, uint64_t* offset, perfmap_entry* out) {
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

struct perfmap_truncation_guard {
  perfmap::TruncationGuard guard;
};

perfmap_status perfmap_truncation_guard_new(perfmap_truncation_guard** out, perfmap_error* error) {
  return guard(error, [&] {
    *out = new perfmap_truncation_guard;
    return PERFMAP_OK;
  });
}

void perfmap_truncation_guard_free(perfmap_truncation_guard* guard) { delete guard; }

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
