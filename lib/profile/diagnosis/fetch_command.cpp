#include "diagnosis/fetch_command.hpp"

#include <set>

#include "perfmap/shell_word.hpp"

namespace perfmap {

std::string fetch_command(const RecordingContext& context) {
  constexpr std::size_t kMostText = 8000;
  std::set<std::string> files;
  for (const auto& [pid, process] : context.samples.processes) {
    if (process.memory == nullptr) continue;
    for (const Region& region : process.memory->regions()) {
      const bool is_path = region.file->is_file() && region.file->name.starts_with('/');
      if (region.access.execute && is_path) files.insert(region.file->name);
    }
  }
  std::string text;
  for (const std::string& file : files) {
    // One shell reads it here, another one there.
    text += " " + shell_word(shell_word(std::string_view(file).substr(1)));
    if (text.size() > kMostText) return {};
  }
  const std::string& given = context.options.symfs;
  const std::string directory = shell_word(given.empty() ? context.path + ".symfs" : given);
  return "mkdir -p " + directory + " && ssh " + shell_word(context.samples.facts.hostname) +
         " tar -C / --ignore-failed-read -chf -" + text + " | tar -C " + directory +
         " -xf - && perfmap doctor --symfs " + directory + " " + shell_word(context.path);
}

}  // namespace perfmap
