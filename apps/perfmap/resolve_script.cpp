#include <perfmap/demangle.hpp>
#include <perfmap/perf_script.hpp>
#include <unistd.h>

#include "doubt_note.hpp"
#include "line_input.hpp"
#include "resolve_options.hpp"
#include "script_sources.hpp"

namespace perfmap::app {

ExitCode resolve_script(const ResolveOptions& options, const Console& console) {
  Result<ScriptSources> sources =
      ScriptSources::open(options.sources, options.source, options.overlap, console);
  if (!sources) return console.fail(sources.error());
  std::string shown;
  PerfScriptFilter filter(
      [&](pid_t pid, const Query& query, PerfScriptFilter::Name& name) {
        if (!sources->find(pid, query, name)) return false;
        const auto readable = options.no_demangle ? std::nullopt : demangle_code(name.name);
        name.name = shown = one_line(readable ? *readable : name.name, console.out_is_terminal());
        return true;
      },
      [](pid_t tid) { return process_of_thread(tid, roots_from_environment()); });
  LineInput input(STDIN_FILENO, [&] { return console.out().flush().has_value(); });
  DoubtCounts doubts;
  std::string text;
  std::string_view line;
  while (input.next(line)) {
    text.clear();
    filter.filter(line, text);
    if (text != line) doubts.add(sources->doubts());
    if (input.ended_in_newline()) text += '\n';
    console.out().write(text);
  }
  note_doubts(doubts, "names", console);
  for (const std::string& missing : sources->missing()) console.note(missing);
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  if (!sources->are_whole(console)) return ExitCode::failed;
  return options.strict && filter.unnamed() != 0 ? ExitCode::findings : ExitCode::ok;
}

}  // namespace perfmap::app
