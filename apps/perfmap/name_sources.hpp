#pragma once

#include <perfmap/resolver.hpp>
#include <span>
#include <string>
#include <vector>

#include "source.hpp"

namespace perfmap::app {

/// Sources as resolve asks them: maps by address, jitdumps by address and time.
struct NameSources {
  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
};
Result<NameSources> open_name_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console);
Result<NameSources> name_sources_of(std::vector<OpenedInput> opened, const SourceOptions& options);

/// What made no sense in them.
struct Problems {
  Diagnostics lines{1};
  Diagnostics records{1};
};
void note_skipped(const Console& console, const Problems& problems);

Resolver make_resolver(NameSources sources, Overlap overlap, Problems& problems,
                       const Console& console);
bool is_whole(const Console& console, const Resolver& resolver);

/// Says of which ELF files there are no lines: in one line, as most systems have debug information
/// of few libraries.
void note_without_lines(std::span<const std::string> modules, const Console& console);

/// The first dump whose times are ticks of the processor, which nothing can be compared with.
const Jitdump* with_ticks(const std::vector<Jitdump>& dumps);

}  // namespace perfmap::app
