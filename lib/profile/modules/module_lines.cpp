#include "modules/module_file.hpp"
#include "modules/module_state.hpp"

namespace perfmap {
namespace {

bool has_dwarf(const Module& module) {
  return module.find_section(".debug_info") != nullptr ||
         module.find_section(".zdebug_info") != nullptr ||
         module.find_section(".debug_info.dwo") != nullptr;
}

/// The package of split units, beside the program or beside its debug file.
Result<Input> open_package(const std::string& root, const std::vector<std::string>& programs) {
  for (const std::string& program : programs) {
    Result<Input> input = open_module_file(root, program + ".dwp");
    if (input) return input;
  }
  return Failure(Error{Errc::not_found, "no package of split units", 0, {}});
}

}  // namespace

const DebugIndex* Module::State::debug_index(const Module& module, const Module& program) {
  std::call_once(lines_once, [&] {
    if (!has_dwarf(module)) return;
    DebugOptions options;
    if (const Module* const shared = alternate_of(module))
      options.alternate = shared->state_->input;
    options.open_split = [below = files.root](const std::string& file) {
      return open_module_file(below, file);
    };
    std::vector<std::string> programs;
    for (const Module* const one : {&program, &module}) {
      if (one->facts().is_file) programs.push_back(one->path());
    }
    options.open_package = [below = files.root, programs] { return open_package(below, programs); };
    Result<DebugIndex> index = DebugIndex::from_input(input, std::move(options));
    if (!index) {
      no_lines = index.error();
      return;
    }
    lines = *std::move(index);
    has_lines.store(true, std::memory_order_release);
  });
  return lines ? &*lines : nullptr;
}

const DebugIndex* Module::debug_index() const {
  const DebugIndex* const own = state_->debug_index(*this, *this);
  if (own != nullptr) return own;
  const Module* const debug = debug_file();
  return debug != nullptr ? debug->state_->debug_index(*debug, *this) : nullptr;
}

const Error* Module::debug_failure() const {
  if (debug_index() != nullptr) return nullptr;
  const Module* const debug = debug_file();
  if (state_->no_lines) return &*state_->no_lines;
  return debug != nullptr && debug->state_->no_lines ? &*debug->state_->no_lines : nullptr;
}

}  // namespace perfmap
