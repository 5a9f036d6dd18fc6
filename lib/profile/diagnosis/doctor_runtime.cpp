#include "diagnosis/doctor_runtime.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <span>

namespace perfmap {
namespace {

constexpr std::string_view kVersion = "0123456789.";

/// What a runtime is known by. Programs and libraries are stems: "python" is python3.11, too.
struct Row {
  HostRuntime runtime;
  std::string_view name;
  std::string_view title;
  std::array<std::string_view, 3> programs;
  std::array<std::string_view, 3> libraries;  // up to ".so"
  std::string_view region;                    // how the name of an executable region begins
};

// Names of files as the projects and distributions install them. Ruby names its memory by
// PR_SET_VMA_ANON_NAME, .NET the memfd that it maps twice, for W^X.
constexpr std::array kRows = {
    Row{HostRuntime::node, "node", "Node.js", {"node", "nodejs"}, {"libnode"}, {}},
    Row{HostRuntime::jvm, "jvm", "the JVM", {"java"}, {"libjvm"}, {}},
    Row{HostRuntime::pypy, "pypy", "PyPy", {"pypy"}, {"libpypy"}, {}},
    Row{HostRuntime::cpython, "cpython", "Python", {"python"}, {"libpython"}, {}},
    Row{HostRuntime::dotnet,
        "dotnet",
        ".NET",
        {"dotnet"},
        {"libcoreclr", "libclrjit"},
        "/memfd:doublemapper"},
    Row{HostRuntime::erlang, "erlang", "Erlang", {"beam.smp", "beam"}, {}, {}},
    Row{HostRuntime::ruby, "ruby", "Ruby", {"ruby"}, {"libruby"}, "[anon:Ruby:"},
    Row{HostRuntime::php, "php", "PHP", {"php", "php-fpm", "php-cgi"}, {"libphp"}, {}},
    Row{HostRuntime::mono, "mono", "Mono", {"mono", "mono-sgen"}, {"libmonosgen-", "libmono-"}, {}},
    Row{HostRuntime::luajit, "luajit", "LuaJIT", {"luajit", "luajit-"}, {"libluajit-"}, {}},
    Row{HostRuntime::wasmtime, "wasmtime", "wasmtime", {"wasmtime"}, {"libwasmtime"}, {}},
};

const Row* row_of(HostRuntime runtime) noexcept {
  const auto* const row = std::find_if(kRows.begin(), kRows.end(),
                                       [&](const Row& one) { return one.runtime == runtime; });
  return row == kRows.end() ? nullptr : row;
}

/// `name` is a stem and digits: "python3.11", "pypy3.9-c", "luajit-2.1.0-beta3".
bool is_program(std::string_view name, std::string_view stem) noexcept {
  if (stem.empty() || !name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (stem == "luajit-") return true;
  if (name.ends_with("-c")) name.remove_suffix(2);
  if (name.ends_with("d") && name.size() > 1) name.remove_suffix(1);  // a debug build's
  return name.find_first_not_of(kVersion) == std::string_view::npos;
}

/// "libpython3.11.so.1.0" of the stem "libpython"; "libpypy3.9-c.so".
bool is_library(std::string_view name, std::string_view stem) noexcept {
  if (stem.empty() || !name.starts_with(stem)) return false;
  const std::size_t end = name.find(".so", stem.size());
  if (end == std::string_view::npos) return false;
  const std::string_view middle = name.substr(stem.size(), end - stem.size());
  return middle.find_first_not_of("0123456789.-cdm") == std::string_view::npos;
}

FoundRuntime by_program(const ProcessView& view) {
  for (const Row& row : kRows) {
    for (const std::string_view stem : row.programs) {
      if (is_program(base_name(view.executable), stem)) {
        return {row.runtime, "executable " + view.executable, {}, true};
      }
    }
  }
  return {};
}

FoundRuntime by_regions(const ProcessView& view) {
  for (const Region& region : view.memory.regions) {
    for (const Row& row : kRows) {
      const bool is_it =
          region.access.execute && !row.region.empty() && region.file->name.starts_with(row.region);
      if (is_it) return {row.runtime, "memory called " + region.file->name, {}};
    }
  }
  return {};
}

FoundRuntime by_libraries(const ProcessView& view) {
  for (const Region& region : view.memory.regions) {
    if (!region.file->is_file()) continue;
    for (const Row& row : kRows) {
      const auto fits = [name = base_name(region.file->name)](std::string_view stem) {
        return is_library(name, stem);
      };
      if (std::any_of(row.libraries.begin(), row.libraries.end(), fits)) {
        return {row.runtime, "library " + region.file->name, {}};
      }
    }
  }
  return {};
}

/// The digits and points that follow `stem` in a file name of the process's: "3.11".
std::string version_in_names(const ProcessView& view, std::string_view stem,
                             std::string_view library) {
  const auto digits = [](std::string_view rest) {
    std::string_view version = rest.substr(0, rest.find_first_not_of(kVersion));
    while (version.ends_with('.')) version.remove_suffix(1);
    return std::string(version);
  };
  const std::string_view program = base_name(view.executable);
  if (program.starts_with(stem)) {
    std::string found = digits(program.substr(stem.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  for (const Region& region : view.memory.regions) {
    const std::string_view name = base_name(region.file->name);
    if (!region.file->is_file() || !name.starts_with(library)) continue;
    std::string found = digits(name.substr(library.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  return {};
}

std::string_view parent_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// JAVA_VERSION of a JDK's file "release": "17.0.15", or "1.8.0_292".
std::string version_in_release(const ProcSource& process, const std::string& path) {
  constexpr std::string_view kKey = "JAVA_VERSION=\"";
  constexpr std::uint64_t kMost = 64 << 10;
  const OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  const auto file = process.open_below_root(path, policy);
  if (!file || !*file) return {};
  const std::string_view text = (*file)->text().substr(0, kMost);
  const std::size_t key = text.find(kKey);
  if (key == std::string_view::npos) return {};
  std::string_view version = text.substr(key + kKey.size());
  version = version.substr(0, version.find_first_not_of(kVersion));
  if (version.starts_with("1.")) version.remove_prefix(2);
  return std::string(version.substr(0, 20));
}

/// Above lib/server/libjvm.so, or above jre/lib/amd64/server/libjvm.so.
std::string java_version(const ProcSource& process, const ProcessView& view) {
  for (const Region& region : view.memory.regions) {
    if (!region.file->is_file() || !base_name(region.file->name).starts_with("libjvm.so")) continue;
    std::string_view home = parent_of(parent_of(region.file->name));
    for (int up = 0; up < 3; ++up) {
      home = parent_of(home);
      std::string found = version_in_release(process, std::string(home) + "/release");
      if (!found.empty()) return found;
    }
    return {};
  }
  return {};
}

}  // namespace

std::string_view to_string(HostRuntime runtime) noexcept {
  const Row* const row = row_of(runtime);
  return row == nullptr ? std::string_view() : row->name;
}

std::string_view title_of(HostRuntime runtime) noexcept {
  const Row* const row = row_of(runtime);
  return row == nullptr ? "this program" : row->title;
}

FoundRuntime find_runtime(const ProcessView& view) {
  FoundRuntime found = by_program(view);
  if (found.runtime == HostRuntime::unknown) found = by_regions(view);
  if (found.runtime == HostRuntime::unknown) found = by_libraries(view);
  if (found.runtime == HostRuntime::cpython) {
    found.version = version_in_names(view, "python", "libpython");
  }
  if (found.runtime == HostRuntime::ruby) {
    found.version = version_in_names(view, "ruby", "libruby-");
  }
  return found;
}

FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view) {
  FoundRuntime found = find_runtime(view);
  if (found.runtime == HostRuntime::jvm) found.version = java_version(process, view);
  return found;
}

FoundRuntime find_runtime_of_program(const std::string& path) {
  ProcessView view;
  view.executable = path;
  return by_program(view);
}

Version parse_version(std::string_view text) noexcept {
  Version version;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, version.major);
  if (error == std::errc() && stop != end && *stop == '.') {
    std::from_chars(stop + 1, end, version.minor);
  }
  return version;
}

}  // namespace perfmap
