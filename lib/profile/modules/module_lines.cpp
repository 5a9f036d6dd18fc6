#include "modules/module_file.hpp"
#include "modules/module_state.hpp"

namespace perfmap {
namespace {

bool has_dwarf(const Module& module) {
  return module.find_section(".debug_info") != nullptr ||
         module.find_section(".zdebug_info") != nullptr ||
         module.find_section(".debug_info.dwo") != nullptr;
}

}  // namespace

const DebugIndex* Module::State::debug_index(const Module& module) {
  std::call_once(lines_once, [&] {
    if (!has_dwarf(module)) return;
    DebugOptions options;
    if (const Module* const shared = alternate_of(module))
      options.alternate = shared->state_->input;
    options.open_split = [below = files.root](const std::string& file) {
      return open_module_file(below, file);
    };
    Result<DebugIndex> index = DebugIndex::from_input(input, std::move(options));
    if (!index) return;
    lines = *std::move(index);
    has_lines.store(true, std::memory_order_release);
  });
  return lines ? &*lines : nullptr;
}

const DebugIndex* Module::debug_index() const {
  if (const DebugIndex* const own = state_->debug_index(*this); own != nullptr) return own;
  const Module* const debug = debug_file();
  return debug != nullptr ? debug->state_->debug_index(*debug) : nullptr;
}

}  // namespace perfmap
