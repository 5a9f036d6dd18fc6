#include "kernel_source.hpp"

#include <fstream>
#include <iterator>
#include <utility>

namespace perfmap::app {
namespace {

constexpr const char* kNotes = "/sys/kernel/notes";
constexpr const char* kKallsyms = "/proc/kallsyms";

/// A file of the kernel's, whose size is not what it says, and which cannot be mapped. Empty if it
/// cannot be read.
std::string read_whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// By the build-id: it identifies the kernel's file, not one boot of it.
bool is_running(const RecordedKernel& kernel) {
  return kernel_build_id(read_whole(kNotes)) == kernel.build_id;
}

}  // namespace

Result<void> KernelSource::open(const std::string& path) {
  Result<Input> text = Input::open(path);
  if (!text) return Failure(std::move(text.error()));
  text_ = *std::move(text);
  is_given_ = true;
  return {};
}

std::string_view KernelSource::text_of(const RecordedKernel& kernel) {
  if (is_given_) return text_->text();
  if (kernel.build_id.empty() || kernel.symbol.empty()) {
    why_ = "the recording does not say which kernel it is of";
    return {};
  }
  if (!is_running(kernel)) {
    why_ = "another kernel was recorded than this machine runs";
    return {};
  }
  Input text = Input::from_text(read_whole(kKallsyms), kKallsyms);
  const auto address = kernel_symbol_address(text.text(), kernel.symbol);
  if (!address) {
    why_ = "only root may read the addresses in " + std::string(kKallsyms);
    return {};
  }
  // The kernel lies elsewhere after each boot, and its modules do in any case.
  if (*address != kernel.address) {
    why_ = "this machine has booted since it was recorded";
    return {};
  }
  text_ = std::move(text);
  return text_->text();
}

void KernelSource::note(const Console& console) const {
  if (why_.empty()) return;
  console.note("frames of the kernel have no names: " + why_ +
               " (--kallsyms FILE takes a copy of its /proc/kallsyms)");
}

}  // namespace perfmap::app
