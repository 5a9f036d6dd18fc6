#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/doctor_advice.hpp"
#include "diagnosis/recording_findings.hpp"

namespace perfmap {

/// How a recorded process has to be started so that its code has names, or its stacks callers.
class StartAdvice {
 public:
  struct Wants {
    bool names = false;
    bool stacks = false;
  };

  /// Borrows all. `has_jit`: the process has code of its runtime already.
  StartAdvice(const RecordingCase& recording, const RecordedView& recorded, const DoctorCase& facts,
              bool has_jit) noexcept
      : recording_(recording), recorded_(recorded), facts_(facts), has_jit_(has_jit) {}

  /// Whether anything can be told to the runtime, or to perf, that keeps its callers.
  bool can_keep_stacks() const;
  /// A change of perf's command line. Nothing where that does not reach the process: perf did not
  /// start it; or where the process can be asked while it lives.
  std::optional<RecordingAdvice::Change> change(Wants wants) const;
  /// "export NAME=VALUE", for a shell that starts it; empty where no variable does that.
  std::string exports(Wants wants) const;

 private:
  bool is_reached() const noexcept;
  std::vector<std::string> variables(Wants wants) const;
  CommandLine command_line(Wants wants) const;
  /// The unwinding information in a jitdump concerns copied stacks.
  bool wants_copies(Wants wants) const;

  const RecordingCase& recording_;
  const RecordedView& recorded_;
  const DoctorCase& facts_;
  bool has_jit_;
};

}  // namespace perfmap
