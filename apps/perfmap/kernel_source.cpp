#include "kernel_source.hpp"

#include <utility>

namespace perfmap::app {
namespace {

constexpr const char* kNotes = "/sys/kernel/notes";
constexpr const char* kKallsyms = "/proc/kallsyms";

/// By the build-id, which is that of the kernel's file, whoever booted it.
bool is_running(const RecordedKernel& kernel) {
  const Result<Input> notes = Input::open(kNotes);
  return notes && kernel_build_id(notes->text()) == kernel.build_id;
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
  Result<Input> text = Input::open(kKallsyms);
  const auto address =
      text ? kernel_symbol_address(text->text(), kernel.symbol) : std::optional<Address>();
  if (!address) {
    why_ = "only root may read the addresses in " + std::string(kKallsyms);
    return {};
  }
  // The kernel lies elsewhere after each boot, and its modules do in any case.
  if (*address != kernel.address) {
    why_ = "this machine has booted since it was recorded";
    return {};
  }
  text_ = *std::move(text);
  return text_->text();
}

void KernelSource::note(const Console& console) const {
  if (why_.empty()) return;
  console.note("frames of the kernel have no names: " + why_ +
               " (--kallsyms FILE takes a copy of its /proc/kallsyms)");
}

}  // namespace perfmap::app
