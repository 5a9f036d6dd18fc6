#include <CLI/CLI.hpp>
#include <cerrno>
#include <perfmap/doctor.hpp>
#include <unistd.h>

#include "command.hpp"
#include "opened_input.hpp"
#include "options.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::string pid;
  std::string format;
};

ExitCode fail(const Console& console, const Options& options, const Error& error) {
  const bool forbidden = error.sys_errno == EACCES || error.sys_errno == EPERM;
  if (!forbidden || ::geteuid() == 0) return console.fail(error);
  return console.fail(error.message + "; try 'sudo perfmap doctor " + options.pid + "'");
}

Result<Diagnosis> examine(pid_t pid, const Console& console) {
  const Step step(console, "examining");
  return diagnose(pid, {roots_from_environment(), ::geteuid()});
}

ExitCode run(const Options& options, const Console& console) {
  const pid_t pid = pid_of_source({options.pid, Source::As::pid});
  const Result<Diagnosis> diagnosis = examine(pid, console);
  if (!diagnosis) return fail(console, options, diagnosis.error());
  if (options.format == "json") {
    write_doctor_json(console.out(), *diagnosis);
  } else {
    write_doctor_text(console.out(), *diagnosis, console.color_out());
  }
  return diagnosis->misses_names() ? ExitCode::findings : ExitCode::ok;
}

}  // namespace

void declare_doctor(CLI::App& command, Action& action) {
  const auto options = std::make_shared<Options>();
  command.add_option("pid", options->pid, "A running process")
      ->check(is_pid())
      ->type_name("PID")
      ->required();
  add_format(command, options->format, {"text", "json"});
  command.callback(
      [options, &action] { action = [options](const Console& c) { return run(*options, c); }; });
}

}  // namespace perfmap::app
