// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "perfmap/profile/annotate.hpp"
#include "process/safe_open.hpp"

namespace perfmap {
namespace {

/// Suffixes of source files, in lower case. A path from debug information may name any file, and
/// only source files are of interest.
constexpr std::array<std::string_view, 53> kSuffixes = {
    "c",   "cc",  "cpp", "cxx",  "c++", "h",     "hh",     "hpp",   "hxx", "h++", "inc",
    "inl", "ipp", "tcc", "s",    "asm", "rs",    "go",     "d",     "di",  "zig", "nim",
    "cr",  "js",  "mjs", "cjs",  "jsx", "ts",    "tsx",    "mts",   "py",  "pyx", "rb",
    "php", "lua", "pl",  "java", "kt",  "scala", "groovy", "clj",   "cs",  "fs",  "vb",
    "erl", "hrl", "ex",  "exs",  "ml",  "hs",    "jl",     "swift", "f90"};

/// The standard library of C++ has headers without a suffix.
bool is_system_header(std::string_view path) noexcept {
  return path.starts_with("/usr/include/") && path.find("/../") == std::string_view::npos;
}

bool is_source_name(std::string_view path) {
  if (is_system_header(path)) return true;
  const std::size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] != '.') return false;
  std::string suffix(path.substr(dot + 1));
  for (char& letter : suffix) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return std::ranges::find(kSuffixes, suffix) != kSuffixes.end();
}

Failure refuse(const std::string& file, const std::string& why) {
  return Failure(Error::cannot("use", file, Reason::unsuitable, why));
}
Failure refuse_private(const std::string& file) {
  return Failure(Error::cannot("use", file, Reason::is_private));
}

/// Whether other users may enter the directory, and those that it is in, up to `top`.
bool others_may_enter(int directory, int top) {
  constexpr int kMaxDepth = 4096;
  struct stat end {
  }, here{};
  if (::fstat(top, &end) != 0) return false;
  Descriptor above;
  for (int depth = 0; depth < kMaxDepth && ::fstat(directory, &here) == 0; ++depth) {
    if (here.st_dev == end.st_dev && here.st_ino == end.st_ino) return true;
    if ((here.st_mode & S_IXOTH) == 0) return false;
    above = Descriptor(::openat(directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    directory = above.get();
  }
  return false;
}

Result<Input> open_file(const std::string& root, const std::string& file, bool is_shared) {
  const OpenPolicy policy{
      .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};
  if (root.empty() && !is_shared) return Input::open(file, policy);
  const std::string begin = root.empty() ? "/" : root;
  const Descriptor top(::open(begin.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top.is_open()) return Failure(system_error("cannot open", begin, errno));
  if (!is_shared) return Input::open_below(top.get(), file, root + file, policy);
  // The file is opened in the directory that was examined, wherever its path leads by then.
  const std::size_t name = file.rfind('/') + 1;
  const Descriptor directory = find_below(top.get(), file.substr(0, name) + ".");
  if (!directory.is_open()) return Failure(system_error("cannot open", root + file, errno));
  if (!others_may_enter(directory.get(), top.get())) return refuse_private(file);
  return Input::open_below(directory.get(), file.substr(name), root + file, policy);
}

/// V8 names a module of JavaScript by its URL.
std::string path_of(const std::string& file) {
  constexpr std::string_view kUrl = "file://";
  return file.starts_with("file:///") ? file.substr(kUrl.size()) : file;
}

/// `file` must be absolute: a relative path would depend on the directory of the reader, which an
/// attacker may have filled.
Result<Input> open_source(const std::string& root, const std::string& file, bool is_shared) {
  if (file.empty() || file.front() != '/') return refuse(file, "its path is not absolute");
  if (file.find('\0') != std::string::npos) return refuse(file, "its path has a NUL");
  if (!is_source_name(file)) return refuse(file, "its name is not that of a source file");
  Result<Input> input = open_file(root, file, is_shared);
  if (!input) return input;
  const FileFacts& facts = input->facts();
  if (facts.size > SourceText::kMaxBytes) return refuse(file, "it is larger than 16 MiB");
  const bool is_own = !is_shared && facts.uid == ::geteuid();
  if (!is_own && (facts.mode & S_IROTH) == 0) return refuse_private(file);
  return input;
}

std::vector<std::size_t> line_begins(std::string_view text) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < text.size();) {
    begins.push_back(at);
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return begins;
}

}  // namespace

const SourceText::File& SourceText::open(const std::string& file) {
  const auto [place, is_new] = files_.try_emplace(file);
  // The name of a file may be lost.
  if (!is_new || file.empty() || file == kInlinedFromAnotherFile) return place->second;
  Result<Input> input = open_source(root_, path_of(file), is_shared_);
  if (!input) {
    place->second.is_private = input.error().reason == Reason::is_private;
    failures_.push_back(std::move(input.error()));
    return place->second;
  }
  if (input->facts().size > left_) {
    failures_.push_back(Error::cannot("use", file, Reason::too_many, "too many source files"));
    return place->second;
  }
  left_ -= input->facts().size;
  place->second.begins = line_begins(input->text());
  place->second.input = *std::move(input);
  return place->second;
}

std::optional<std::string_view> SourceText::line(const std::string& file, std::uint32_t line) {
  const File& opened = open(file);
  if (!opened.input || line == 0 || line > opened.begins.size()) return std::nullopt;
  const std::string_view text = opened.input->text();
  const std::size_t begin = opened.begins[line - 1];
  std::string_view found = text.substr(begin, text.find('\n', begin) - begin);
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

std::optional<std::string> SourceText::line_without_tabs(const std::string& file,
                                                         std::uint32_t line) {
  constexpr std::size_t kTab = 8;
  const std::optional<std::string_view> found = this->line(file, line);
  if (!found) return std::nullopt;
  std::string text;
  for (const char letter : *found) {
    if (letter == '\t') {
      text.append(kTab - text.size() % kTab, ' ');
    } else {
      text += letter;
    }
  }
  return text;
}

void SourceText::check_times(const CodeVersion& version, std::int64_t recorded_ns) {
  const bool is_program = version.built_ns != 0;
  const std::int64_t made = is_program ? version.built_ns : recorded_ns;
  if (made == 0) return;
  for (const std::string& file : version.files) {
    const auto found = files_.find(file);
    if (found == files_.end() || !found->second.input || found->second.is_changed) continue;
    if (found->second.input->facts().mtime_ns <= made) continue;
    found->second.is_changed = true;
    changed_.push_back({file, is_program});
  }
}

}  // namespace perfmap
