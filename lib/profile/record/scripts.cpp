// SPDX-License-Identifier: MIT
#include "record/scripts.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/profile/record.hpp"
#include "record/launchers.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 10;

/// Reads the words of a shell command, without knowing all of its language.
class ShellReader {
 public:
  ShellReader(std::string_view text, const std::vector<std::string>& environment)
      : text_(text), environment_(environment) {}

  CanCreate read() {
    while (found_ != CanCreate::no && skip_to_word()) take(next_word());
    if (wants_directory_) add(CanCreate::unknown);  // the home directory
    return found_;
  }

 private:
  static constexpr std::string_view kBlanks = " \t\r";
  static constexpr std::string_view kSeparators = ";&|()<>`\n";
  static constexpr std::string_view kQuotes = "\"'";

  void add(CanCreate one) { found_ = std::max(found_, one); }
  bool skip_to_word();
  std::string next_word();
  void take(const std::string& word);
  void take_command(const std::string& word);
  void take_directory(const std::string& word);
  void take_argument(const std::string& word);
  bool is_script(const std::string& word) const;
  std::string path_of(const std::string& word) const {
    return word.starts_with('/') || directory_.empty() ? word : directory_ + "/" + word;
  }

  std::string_view text_;  // what is left of it
  const std::vector<std::string>& environment_;
  std::string directory_;         // to which it changed; empty: none
  bool is_command_ = true;        // the next word is the name of a program
  bool wants_directory_ = false;  // that of "cd"
  const Launcher* launcher_ = nullptr;
  CanCreate found_ = CanCreate::yes;
};

/// As in "A=B program".
bool is_assignment(std::string_view word) noexcept {
  return !word.starts_with('-') && word.find('=') < word.find('/');
}

bool ShellReader::skip_to_word() {
  while (!text_.empty()) {
    const char c = text_.front();
    if (c == '#') {
      text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
      continue;
    }
    if (kSeparators.find(c) != std::string_view::npos) {
      if (wants_directory_) add(CanCreate::unknown);
      wants_directory_ = false;
      is_command_ = is_command_ || (c != '<' && c != '>');
      launcher_ = nullptr;
    } else if (kBlanks.find(c) == std::string_view::npos) {
      return true;
    }
    text_.remove_prefix(1);
  }
  return false;
}

/// Without its quotes. A quoted text may be a command: sh -c "...".
std::string ShellReader::next_word() {
  std::size_t size = 0;
  while (size < text_.size() && kBlanks.find(text_[size]) == std::string_view::npos &&
         kSeparators.find(text_[size]) == std::string_view::npos) {
    ++size;
  }
  std::string_view word = text_.substr(0, size);
  text_.remove_prefix(size);
  const std::size_t begin = word.find_first_not_of(kQuotes);
  if (begin == std::string_view::npos) return {};
  is_command_ = is_command_ || (begin != 0 && word[begin] != '$');
  return std::string(word.substr(begin, word.find_last_not_of(kQuotes) + 1 - begin));
}

void ShellReader::take(const std::string& word) {
  constexpr std::array<std::string_view, 12> kBefore = {
      "{", "}", "if", "then", "else", "elif", "while", "until", "do", "!", "exec", "command"};
  if (wants_directory_) return take_directory(word);
  if (is_command_ && std::ranges::find(kBefore, word) != kBefore.end()) return;
  if (is_command_ && is_assignment(word)) return;  // A=B program
  const Launcher* const launcher = find_launcher(word);
  if (launcher != nullptr && (launcher->starts == Starts::user || launcher->moves == "*")) {
    return add(CanCreate::unknown);
  }
  if (is_command_)
    take_command(word);
  else
    take_argument(word);
  is_command_ = launcher != nullptr && launcher->starts != Starts::text;
  if (launcher != nullptr) launcher_ = launcher;
}

void ShellReader::take_command(const std::string& word) {
  constexpr std::array<std::string_view, 3> kChange = {"cd", "pushd", "chdir"};
  constexpr std::array<std::string_view, 3> kHidden = {"eval", "source", "."};
  if (std::ranges::find(kChange, word) != kChange.end()) {
    wants_directory_ = true;
  } else if (std::ranges::find(kHidden, word) != kHidden.end() || is_script(word) ||
             (word.starts_with('$') && word != "$@" && word != "$*")) {
    add(CanCreate::unknown);
  } else if (launcher_ != nullptr) {
    take_argument(word);
  }
}

void ShellReader::take_directory(const std::string& word) {
  wants_directory_ = is_command_ = false;
  const std::string path = path_of(word);
  struct stat status {};
  const bool is_known = !word.starts_with('-') &&
                        word.find_first_of("$*?~\\") == std::string::npos &&
                        ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (!is_known) return add(CanCreate::unknown);
  directory_ = path;
  if (!can_create_files_in(path)) add(CanCreate::no);
}

void ShellReader::take_argument(const std::string& word) {
  if (launcher_ == nullptr) return;
  if (is_option_of(word, launcher_->moves)) return add(CanCreate::unknown);
  if (word.starts_with('-') || launcher_->starts != Starts::text) return;
  struct stat status {};
  const bool is_file = ::stat(path_of(word).c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (word.starts_with('$') || is_file || is_script(word)) add(CanCreate::unknown);  // sh FILE
}

/// Of a shell, or another interpreter that may start programs.
bool ShellReader::is_script(const std::string& word) const {
  const std::string path =
      program_path(word.find('/') == std::string::npos ? word : path_of(word), environment_);
  if (path.empty() || runtime_named(path) != nullptr) return false;
  const std::string interpreter = interpreter_of(path);
  return !interpreter.empty() && runtime_named(interpreter) == nullptr;
}

std::string beginning_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::string text(kMaxText, '\0');
  const ssize_t size = file.is_open() ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

/// Many scripts begin with a change to their own directory.
std::string with_own_directory(std::string text, const std::string& path) {
  constexpr std::array<std::string_view, 6> kIdioms = {"$(dirname \"$0\")",
                                                       "$(dirname $0)",
                                                       "$(dirname -- \"$0\")",
                                                       "$(dirname \"${BASH_SOURCE[0]}\")",
                                                       "$(dirname -- \"${BASH_SOURCE[0]}\")",
                                                       "${0%/*}"};
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  for (const std::string_view idiom : kIdioms) {
    std::string replaced;
    std::size_t from = 0;
    for (std::size_t at = 0; (at = text.find(idiom, from)) != std::string::npos;) {
      replaced.append(text, from, at - from).append(directory);
      from = at + idiom.size();
    }
    text = replaced.append(text, from);
  }
  return text;
}

}  // namespace

CanCreate can_create_by(std::string_view text, const std::vector<std::string>& environment) {
  return ShellReader(text, environment).read();
}

CanCreate can_create_by_script(const std::string& path,
                               const std::vector<std::string>& environment) {
  const std::string text = beginning_of(path);
  const CanCreate found = can_create_by(with_own_directory(text, path), environment);
  return text.size() < kMaxText ? found : std::max(found, CanCreate::unknown);
}

std::string interpreter_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<char, 256> begin = {};
  const ssize_t size = file.is_open() ? ::read(file.get(), begin.data(), begin.size()) : 0;
  if (size < 3) return {};
  std::string_view line(begin.data(), static_cast<std::size_t>(size));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  bool is_env = false;
  while (!line.empty()) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    const bool is_option = word.starts_with('-') || word.find('=') != std::string_view::npos;
    if (is_env && is_option) continue;
    if (base_name(word) != "env") return std::string(word);
    is_env = true;
  }
  return {};
}

const RuntimeInfo* runtime_named(std::string_view path) noexcept {
  if (const RuntimeInfo* const row = runtime_of_program(path)) return row;
  const auto rows = all_runtimes();
  const std::string_view name = base_name(path);
  const auto found = std::ranges::find_if(rows, [name](const RuntimeInfo* row) {
    return !name.empty() && (row->signs.launcher == name || row->started.program == name);
  });
  return found == rows.end() ? nullptr : *found;
}

}  // namespace perfmap
