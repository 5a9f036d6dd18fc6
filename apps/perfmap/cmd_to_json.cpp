#include "command_line.hpp"
#include "convert.hpp"

namespace perfmap::app {
namespace {

constexpr std::array kSuffixes = {SuffixFormat{".json", "json"}, SuffixFormat{".jsonl", "jsonl"}};

}  // namespace

void declare_to_json(CommandOptions& command) {
  ConvertOptions& options = command.runs(convert, choose_target);
  options.suffixes = kSuffixes;
  options.standard = "json";
  add_conversion(command, options);
}

}  // namespace perfmap::app
