// SPDX-License-Identifier: MIT
#include "help_text.hpp"

#include <algorithm>
#include <sys/ioctl.h>
#include <utility>

#include "command_texts.hpp"

namespace perfmap::app {
namespace {

constexpr std::size_t kPipeWidth = 80;
constexpr std::size_t kMinWidth = 40;
constexpr std::size_t kMaxWidth = 100;  // longer lines are hard to read
/// What options are for begins in this column.
constexpr std::size_t kHelpColumn = 26;
/// More than this many bytes of values are listed with the description instead.
constexpr std::size_t kMaxValueName = 32;
/// More values than this are ids, which a reader looks up elsewhere.
constexpr std::size_t kMaxListed = 12;

/// Columns of UTF-8 text without wide characters.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// Appends the words of `text`, from column `at` on; further lines begin in column `indent`.
void append_wrapped(std::string& out, std::string_view text, std::size_t at, std::size_t indent,
                    std::size_t width) {
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t columns = columns_of(word);
    if (!is_first && at + 1 + columns > width) {
      out.append("\n").append(indent, ' ');
      at = indent;
    } else if (!is_first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += columns;
    is_first = false;
  }
  out += '\n';
}

/// "  LEFT   TEXT", with TEXT below LEFT if there is no room beside it.
void append_row(std::string& out, const std::string& left, std::string_view text,
                std::size_t column, std::size_t width) {
  out.append("  ").append(left);
  const std::size_t end = 2 + columns_of(left);
  if (end + 2 <= column) {
    out.append(column - end, ' ');
  } else {
    out.append("\n").append(column, ' ');
  }
  append_wrapped(out, text, column, column, width);
}

std::string joined_values(const OptionDescription& option, std::string_view separator) {
  std::string text;
  for (const OptionValue& one : option.values) {
    if (!text.empty()) text += separator;
    text += one.value;
  }
  return text;
}

bool lists_values(const OptionDescription& option) {
  return !option.values.empty() && option.values.size() <= kMaxListed;
}

/// "-o, --output FILE"; a long name without a short one begins where others' do.
std::string names_of(const OptionDescription& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
  if (text.starts_with("--")) text.insert(0, "    ");
  if (option.takes_value) text += " " + value_name(option);
  return text;
}

void append_usages(std::string& out, const CommandTexts& texts, std::size_t width) {
  std::string_view head = "Usage: ";
  for (const std::string_view usage : texts.usages) {
    out += head;
    append_wrapped(out, usage, head.size(), 11, width);
    head = "       ";
  }
  out += '\n';
  append_wrapped(out, texts.paragraph, 0, 0, width);
}

void append_options(std::string& out, const CommandDescription& command, std::size_t width) {
  bool is_first = true;
  for (const OptionDescription& option : command.options) {
    if (!option.names.empty()) continue;
    if (std::exchange(is_first, false)) out += "\nArguments:\n";
    append_row(out, option.value_name, help_of(option), kHelpColumn, width);
  }
  for (const std::string_view group : option_groups()) {
    is_first = true;
    for (const OptionDescription& option : command.options) {
      if (option.names.empty() || option.group != group) continue;
      if (std::exchange(is_first, false)) out.append("\n").append(group).append(":\n");
      append_row(out, names_of(option), help_of(option), kHelpColumn, width);
    }
  }
}

/// A command stays on one line, so that it can be copied.
void append_examples(std::string& out, const CommandTexts& texts, std::size_t width) {
  out += "\nExamples:\n";
  for (const Example& example : texts.examples) {
    out += "  ";
    append_wrapped(out, std::string(example.purpose) + ":", 2, 2, width);
    out.append("    ").append(example.command).append("\n");
  }
}

void append_exit_statuses(std::string& out, const CommandTexts& texts, std::size_t width) {
  out += "\nExit status:\n";
  append_row(out, "0", texts.done, 5, width);
  if (!texts.no.empty()) append_row(out, "1", texts.no, 5, width);
  append_row(out, "2", texts.failed, 5, width);
}

}  // namespace

std::size_t help_width(int descriptor) {
  winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kPipeWidth;
  return std::clamp<std::size_t>(size.ws_col, kMinWidth, kMaxWidth);
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  append_wrapped(out, text, 0, 0, width);
  return out;
}

std::string program_help(const CommandDescription& program, std::size_t width) {
  const CommandTexts& texts = *texts_of("perfmap");
  std::string out;
  append_usages(out, texts, width);
  std::string_view group;
  for (const CommandSummary& command : command_summaries()) {
    if (command.group != group) out.append("\n").append(command.group).append(":\n");
    group = command.group;
    append_row(out, std::string(command.name), command.summary, 15, width);
  }
  append_options(out, program, width);
  append_examples(out, texts, width);
  append_exit_statuses(out, texts, width);
  return out;
}

std::string command_help(const CommandDescription& command, std::size_t width) {
  const CommandTexts& texts = *texts_of(command.name);
  std::string out;
  append_usages(out, texts, width);
  append_options(out, command, width);
  append_examples(out, texts, width);
  append_exit_statuses(out, texts, width);
  return out;
}

std::string value_name(const OptionDescription& option) {
  const std::string values = joined_values(option, "|");
  return lists_values(option) && values.size() <= kMaxValueName ? values : option.value_name;
}

std::string help_of(const OptionDescription& option) {
  if (!lists_values(option)) return option.help;
  const std::string values = joined_values(option, ", ");
  if (!option.names.empty() && value_name(option) != option.value_name) return option.help;
  return option.help + "; one of " + values;
}

}  // namespace perfmap::app
