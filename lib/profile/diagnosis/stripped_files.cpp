#include "diagnosis/stripped_files.hpp"

#include <algorithm>

#include "diagnosis/doctor_advice.hpp"
#include "diagnosis/ended_stacks.hpp"
#include "perfmap/module.hpp"
#include "perfmap/shell_word.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostFiles = 8;  // that are named one by one

bool has_symbol_table(const Module& module) {
  // Packed symbols have all functions, as .symtab does.
  return module.find_section(".symtab") != nullptr ||
         module.find_section(".gnu_debugdata") != nullptr;
}

bool is_stripped(const Module& module) {
  const Module* const debug = module.debug_file();
  return !has_symbol_table(module) && (debug == nullptr || !has_symbol_table(*debug));
}

/// "/usr/lib/libx.so (12), /usr/lib/liby.so (3) and 2 more"
std::string list_of(const std::vector<StrippedFile>& files) {
  std::string text;
  for (std::size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) {
    text += (i == 0 ? "" : ", ") + visible(files[i].path) + " (" +
            std::to_string(files[i].unnamed) + ")";
  }
  if (files.size() <= kMostFiles) return text;
  return text + " and " + std::to_string(files.size() - kMostFiles) + " more";
}

/// Servers that the reader has chosen stay.
std::string ask_servers(const RecordingContext& context) {
  return "DEBUGINFOD_URLS=\"${DEBUGINFOD_URLS:-https://debuginfod.elfutils.org/}\" "
         "perfmap stacks --debuginfod " +
         shell_word(context.path);
}

std::string install_packages(const RecordingContext& context,
                             const std::vector<StrippedFile>& files) {
  constexpr std::size_t kMostText = 4000;
  const std::string sudo = context.options.reader == 0 ? "" : "sudo ";
  std::string line = sudo + "apt install debian-goodies && find-dbgsym-packages --install";
  for (const StrippedFile& file : files) {
    if (file.has_build_id) line += " " + shell_word(file.path);
    if (line.size() > kMostText) return {};
  }
  return line;
}

}  // namespace

ProcessTracker::OpenModule OpenedModules::watch(ProcessTracker::OpenModule open) {
  open_ = std::move(open);
  return [this](const Region& region, const ProcSource* process) {
    auto module = open_(region, process);
    if (module) regions_.try_emplace(region.file->name, region);
    return module;
  };
}

std::vector<StrippedFile> OpenedModules::stripped(const StackCounter& counter) const {
  std::vector<StrippedFile> found;
  for (const auto& [path, count] : counter.unnamed_files()) {
    const auto region = regions_.find(path);
    if (region == regions_.end()) continue;
    const auto module = open_(region->second, nullptr);
    if (!module || !is_stripped(**module)) continue;
    found.push_back({std::string(path), count, !(*module)->build_id().empty()});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.unnamed > b.unnamed; });
  return found;
}

void add_symbol_findings(const RecordingCase& facts, const std::vector<StrippedFile>& stripped,
                         RecordingAdvice& advice) {
  const RecordingContext& context = facts.context;
  std::uint64_t unnamed = 0;
  for (const StrippedFile& file : stripped) unnamed += file.unnamed;
  const StackCounts& total = facts.statistics.total;
  // Frames of the kernel are never in a file.
  const std::uint64_t frames =
      total.frames - total.sources[static_cast<std::size_t>(FrameSource::kernel)];
  if (!matters(unnamed, frames)) return;
  const std::string message =
      std::to_string(unnamed) + " of " + std::to_string(frames) + " frames outside the kernel (" +
      percent_text(unnamed, frames) +
      ") have no name, because the symbols of their files were stripped: " + list_of(stripped);
  const bool has_build_id =
      std::ranges::any_of(stripped, [](const StrippedFile& file) { return file.has_build_id; });
  const bool can_fetch = context.options.has_debuginfod && context.options.has_debuginfod();
  if (!has_build_id) {
    advice.add("no-symbols", Severity::warning,
               message +
                   "; without a build-id no debug file can be found for them: use files "
                   "that were not stripped");
  } else if (can_fetch) {
    advice.add("no-symbols", Severity::warning,
               message + "; servers of debuginfod have the symbols of most distributions' packages",
               ask_servers(context));
  } else {
    advice.add("no-symbols", Severity::warning,
               message +
                   "; on Debian, install their packages -dbgsym or -dbg, from the archive "
                   "debian-debug, which has to be among apt's sources",
               is_of_this_machine(context.samples) ? install_packages(context, stripped) : "");
  }
}

}  // namespace perfmap
