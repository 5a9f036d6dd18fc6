#include "script_sources.hpp"

#include <algorithm>

namespace perfmap::app {

Result<ScriptSources> ScriptSources::open(const std::vector<Source>& sources,
                                          const SourceOptions& options, Overlap overlap,
                                          const Console& console) {
  ScriptSources script(console);
  script.options_ = options;
  script.overlap_ = overlap;
  if (sources.empty()) return script;
  if (reads_stdin(sources)) {
    return Failure({Errc::invalid_argument,
                    "standard input is the perf script text and cannot be a source",
                    0,
                    {}});
  }
  Result<NameSources> opened = open_name_sources(sources, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  Problems ignored;
  script.given_ = make_resolver(*std::move(opened), overlap, ignored, console);
  return script;
}

const Resolver* ScriptSources::of(pid_t pid) {
  if (given_) return &*given_;
  if (pid == 0) return nullptr;
  const auto [at, is_new] = own_.try_emplace(pid);
  if (is_new) {
    Result<std::vector<OpenedInput>> opened =
        open_process_inputs(pid, roots_from_environment(), options_, *console_);
    Result<NameSources> sources =
        opened ? name_sources_of(*std::move(opened), options_) : Failure(std::move(opened.error()));
    Problems ignored;
    if (sources) {
      at->second = make_resolver(*std::move(sources), overlap_, ignored, *console_);
    } else {
      missing_.push_back(sources.error().message);
    }
  }
  return at->second ? &*at->second : nullptr;
}

bool ScriptSources::are_whole(const Console& console) const {
  return (!given_ || is_whole(console, *given_)) &&
         std::all_of(own_.begin(), own_.end(), [&](const auto& own) {
           return !own.second || is_whole(console, *own.second);
         });
}

bool ScriptSources::find(pid_t pid, const Query& query, PerfScriptFilter::Name& name) {
  const Resolver* const resolver = of(pid);
  if (resolver == nullptr) return false;
  const Resolution answer = resolver->find(query);
  if (!answer.found) return false;
  name = {answer.found->name, answer.found->range.begin};
  doubts_ = answer.found->doubts;
  return true;
}

}  // namespace perfmap::app
