#include "diagnosis/doctor_advice.hpp"

namespace perfmap {

std::string sudo(const DoctorCase& facts) { return facts.options.reader == 0 ? "" : "sudo "; }

std::string live_command(const DoctorCase& facts) {
  const MapSupport& maps = facts.runtime().maps;
  if (!maps.is_live()) return {};
  const ProcessView& view = facts.view;
  const auto call = [&maps](pid_t pid) {
    return std::string(maps.live_tool) + " " + std::to_string(pid) + " " +
           std::string(maps.live_command);
  };
  if (view.inner != view.pid || view.other_mounts) {
    return sudo(facts) + "nsenter --target " + std::to_string(view.pid) + " --mount --pid -- " +
           call(view.inner);
  }
  // A runtime listens to its own user.
  const bool own = view.status.uid == facts.options.reader;
  return (own ? "" : "sudo -u '#" + std::to_string(view.status.uid) + "' ") + call(view.pid);
}

CommandLine naming_command_line(const DoctorCase& facts, bool has_jit) {
  const auto command = facts.runtime().maps.command;
  return command == nullptr ? CommandLine() : command(facts.process(has_jit));
}

std::string naming_command(const DoctorCase& facts, bool has_jit) {
  const MapSupport& maps = facts.runtime().maps;
  if (maps.is_live()) return live_command(facts);
  if (maps.command == nullptr) return std::string(maps.build_command);
  return naming_command_line(facts, has_jit).text();
}

std::vector<std::string> naming_variables(const DoctorCase& facts) {
  if (facts.is_too_old()) return {};
  const auto variables = facts.runtime().maps.naming_variables;
  return {variables.begin(), variables.end()};
}

StackFlags stack_flags(const DoctorCase& facts) {
  return stack_flags(facts.found.runtime, facts.process());
}

}  // namespace perfmap
