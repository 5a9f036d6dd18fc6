#include "script_maps.hpp"

namespace perfmap::app {

Result<ScriptMaps> ScriptMaps::open(const std::vector<Source>& sources,
                                    const SourceOptions& options, Overlap overlap,
                                    const std::string& map_dir, const Console& console) {
  ScriptMaps script;
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
  Result<std::vector<Map>> maps = open_sources(sources, options, console);
  if (!maps) return Failure(std::move(maps.error()));
  script.given_ = script.index_of(*std::move(maps));
  return script;
}

Index ScriptMaps::index_of(std::vector<Map> maps) {
  Diagnostics ignored(1);
  return {std::move(maps), overlap_, ignored};
}

/// A directory that was named is looked into as it is; only links and odd files stay out.
Result<Map> ScriptMaps::open_of(pid_t pid) const {
  if (map_dir_.empty()) return open_process(pid, options_);
  const std::string path = map_dir_ + "/perf-" + std::to_string(pid) + ".map";
  Result<Input> input = Input::open(path, {.follow_link = false, .regular_only = true});
  if (!input) return Failure(std::move(input.error()));
  return Map(*std::move(input));
}

const Index* ScriptMaps::of(pid_t pid) {
  if (given_) return &*given_;
  if (pid == 0) return nullptr;
  const auto [at, is_new] = own_.try_emplace(pid);
  if (is_new) {
    Result<Map> map = open_of(pid);
    if (map) {
      std::vector<Map> maps;
      maps.push_back(*std::move(map));
      at->second = index_of(std::move(maps));
    } else {
      missing_.push_back(map.error().message);
    }
  }
  return at->second ? &*at->second : nullptr;
}

bool ScriptMaps::are_whole(const Console& console) const {
  bool whole = !given_ || is_whole(console, given_->maps());
  for (const auto& [pid, index] : own_) {
    whole = (!index || is_whole(console, index->maps())) && whole;
  }
  return whole;
}

bool ScriptMaps::find(pid_t pid, Address address, PerfScriptFilter::Name& name) {
  const Index* const index = of(pid);
  const auto entry = index == nullptr ? std::nullopt : index->find_entry(address);
  if (!entry) return false;
  name = {entry->name, entry->range.begin};
  return true;
}

}  // namespace perfmap::app
