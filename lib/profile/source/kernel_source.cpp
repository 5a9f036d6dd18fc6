// SPDX-License-Identifier: MIT
#include <fstream>
#include <sstream>
#include <utility>

#include "perfmap/input.hpp"
#include "perfmap/map.hpp"
#include "perfmap/profile/source.hpp"
#include "perfmap/profile/stacks.hpp"
#include "stacks/kernel_symbols.hpp"

namespace perfmap {

namespace {

constexpr const char* kNotes = "/sys/kernel/notes";
constexpr const char* kKallsyms = "/proc/kallsyms";
/// Letters of nm(1), as kernels print them.
constexpr std::string_view kSymbolTypes = "aAbBdDrRtTuUvVwW";

/// A file of the kernel's, whose size is not what it says, and which cannot be mapped. Empty if it
/// cannot be read.
std::string read_whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// By the build-id: it identifies the kernel's file, not one boot of it.
bool is_running(const RecordedKernel& kernel) {
  return kernel_build_id(read_whole(kNotes)) == kernel.build_id;
}

/// A copy of /proc/kallsyms.
Result<Input> open_kallsyms(const std::string& path) {
  const StreamCheck check = [path](std::string_view begin) -> Result<StreamStart> {
    // "ffffffff81000000 T _stext". In a perf map, the size follows the address.
    const std::size_t space = std::min(begin.find(' '), begin.size());
    const std::string_view type = begin.substr(space).substr(0, 3);
    const bool has_type =
        type.size() == 3 && type[2] == ' ' && kSymbolTypes.find(type[1]) != std::string_view::npos;
    if (parse_hex(begin.substr(0, space)) && has_type) return StreamStart::accepted;
    return Failure(
        Error::bad_format(path +
                          " is not a copy of /proc/kallsyms: it does not begin with an address and "
                          "the type of a symbol"));
  };
  OpenPolicy policy;
  policy.check_start = &check;
  policy.max_stream_bytes = std::uint64_t{256} << 20;  // a kernel has some 200 000 symbols
  Result<Input> text = Input::open(path, policy);
  // Only streams are checked while they are read. An empty file has no names.
  if (!text || text->text().empty()) return text;
  if (const auto start = check(text->text()); !start) return failure(start);
  return text;
}

}  // namespace

Result<void> KernelSource::open(const std::string& path) {
  Result<Input> text = open_kallsyms(path);
  if (!text) return failure(text);
  text_ = *std::move(text);
  is_given_ = true;
  return {};
}

std::string_view KernelSource::text_of(const RecordedKernel& kernel) {
  if (is_given_) return text_->text();
  if (kernel.build_id.empty() || kernel.symbol.empty()) {
    why_ = "the recording does not name its kernel";
    return {};
  }
  if (!is_running(kernel)) {
    why_ = "the recording is from another kernel than the one of this machine";
    return {};
  }
  Input text = Input::from_text(read_whole(kKallsyms), kKallsyms);
  const auto address = kernel_symbol_address(text.text(), kernel.symbol);
  if (!address) {
    why_ = Error::of(Reason::hidden_addresses, kKallsyms).message();
    return {};
  }
  // The kernel lies elsewhere after each boot, and its modules do in any case.
  if (*address != kernel.address) {
    why_ = "this machine was rebooted after the recording";
    return {};
  }
  text_ = std::move(text);
  return text_->text();
}

struct KernelNames::State {
  explicit State(Input read) : text(std::move(read)) { symbols.find(0); }

  Input text;
  /// Its find() reads the text at the first call, and changes nothing later.
  KernelSymbols symbols{[this] { return text.text(); }};
};

KernelNames::KernelNames(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelNames::KernelNames(KernelNames&&) noexcept = default;
KernelNames& KernelNames::operator=(KernelNames&&) noexcept = default;
KernelNames::~KernelNames() = default;

Result<KernelNames> KernelNames::of(Result<Input> text) {
  if (!text) return failure(text);
  auto state = std::make_unique<State>(*std::move(text));
  if (!state->symbols.is_hidden()) return KernelNames(std::move(state));
  return Failure(Error::of(Reason::hidden_addresses, kKallsyms));
}

Result<KernelNames> KernelNames::open(const std::string& path) { return of(open_kallsyms(path)); }

Result<KernelNames> KernelNames::of_running() {
  std::string text = read_whole(kKallsyms);
  if (text.empty()) return Failure(Error::io(std::string(kKallsyms) + " cannot be read"));
  return of(Input::from_text(std::move(text), kKallsyms));
}

std::optional<KernelNames::Function> KernelNames::find(Address address) const {
  const auto found = state_->symbols.find(address);
  if (!found) return std::nullopt;
  return Function{found->name, found->module, found->begin};
}

}  // namespace perfmap
