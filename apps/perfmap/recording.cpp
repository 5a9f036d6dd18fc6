#include "recording.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <utility>

#include "source.hpp"

namespace perfmap::app {
Result<void> check_other_file(const std::string& output, const Input& recording) {
  struct stat there {};
  struct stat read {};
  const bool is_stdin = recording.name() == "-";
  const bool known =
      is_stdin ? ::fstat(0, &read) == 0 : ::stat(recording.name().c_str(), &read) == 0;
  if (output == "-" || !known || !S_ISREG(read.st_mode)) return {};
  if (::stat(output.c_str(), &there) != 0) return {};
  if (there.st_dev != read.st_dev || there.st_ino != read.st_ino) return {};
  return Failure(Error{Errc::refused, "cannot write to " + output + ": it is what is read", 0, {}});
}

namespace {

constexpr std::size_t kShownFiles = 5;

}  // namespace

Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options) {
  RecordedJitOptions jit;
  jit.roots = roots_from_environment();
  jit.symfs = options.symfs;
  jit.any_owner = options.any_owner;
  const Result<void> known = set_map_dir(options.map_dir, jit);
  if (!known) return Failure(known.error());
  return jit;
}

void report_refused(const RecordedRefusals& refused, const Console& console) {
  for (const Error& error : refused.others) console.warn(error.message);
  const std::vector<ForeignFile>& foreign = refused.foreign;
  for (std::size_t i = 0; i < std::min(foreign.size(), kShownFiles); ++i) {
    console.warn(to_string(foreign[i]));
  }
  if (foreign.size() > kShownFiles) {
    console.warn("foreign-owner: " + std::to_string(foreign.size() - kShownFiles) +
                 " more files of other users were not used");
  }
  advise_on_foreign(refused, console);
}

void advise_on_foreign(const RecordedRefusals& refused, const Console& console) {
  if (refused.foreign.empty()) return;
  console.note("to use files of other users, too: " + console.command_with("--any-owner"));
}

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
