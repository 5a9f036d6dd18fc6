#include "script_sources.hpp"

#include <algorithm>

namespace perfmap::app {

Result<ScriptSources> ScriptSources::open(const std::vector<Source>& sources,
                                          const SourceOptions& options, Overlap overlap,
                                          const std::string& map_dir, const Console& console) {
  ScriptSources script(console);
  script.options_ = options;
  script.overlap_ = overlap;
  script.map_dir_ = map_dir;
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

/// A directory that was named is looked into as it is; only links and odd files stay out.
Result<std::vector<OpenedInput>> ScriptSources::open_of(pid_t pid) const {
  if (map_dir_.empty()) {
    return open_process_inputs(pid, roots_from_environment(), options_, *console_);
  }
  const std::string number = std::to_string(pid);
  std::vector<OpenedInput> opened;
  std::optional<Error> first;
  for (const std::string& name : {"perf-" + number + ".map", "jit-" + number + ".dump"}) {
    Result<Input> input =
        Input::open(map_dir_ + "/" + name, {.follow_link = false, .regular_only = true});
    Result<OpenedInput> one =
        input ? as_opened(*std::move(input), options_, false) : Failure(std::move(input.error()));
    if (one) opened.push_back(*std::move(one));
    if (!one && !first) first = std::move(one.error());
  }
  if (opened.empty()) return Failure(*std::move(first));
  return opened;
}

const Resolver* ScriptSources::of(pid_t pid) {
  if (given_) return &*given_;
  if (pid == 0) return nullptr;
  const auto [at, is_new] = own_.try_emplace(pid);
  if (is_new) {
    Result<std::vector<OpenedInput>> opened = open_of(pid);
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
  return true;
}

}  // namespace perfmap::app
