#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace perfmap::app {

/// The options that every command takes, before and after its name.
struct CommonOptions {
  ColorWish color = ColorWish::automatic;
  bool quiet = false;
  bool verbose = false;
};

/// The whole command line: what completions and manual pages are generated from, too. With
/// `command` only as much of it as that one needs: declaring all takes longer than most look-ups.
std::unique_ptr<CLI::App> make_parser(CommonOptions& common, Action& action,
                                      std::string_view command = {});

/// The command that a command line names, where its parser can do without the others.
std::string_view only_command(int count, const char* const* arguments);

/// "unknown command 'x'" and the nearest real one.
std::string unknown_command(const std::string& argument);

/// The same where the command line names no command of ours; empty otherwise. Asked before the
/// parser is, which would first miss what another word wants.
std::string misspelt_command(int count, const char* const* arguments);

/// The command line as the parser takes it, last word first. CLI11 looks at how many values an
/// option still wants before it believes a "--", so words behind that are marked instead; the
/// parser's positionals take the mark off again.
std::vector<std::string> parser_arguments(int count, const char* const* arguments);

/// What is wrong with a command line, in one line: CLI11's message, and the nearest real name where
/// a command or an option is unknown.
std::string explain(const CLI::App& parser, const CLI::ParseError& error, int count,
                    const char* const* arguments);

}  // namespace perfmap::app
