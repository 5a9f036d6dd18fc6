#include <perfmap/pprof_names.hpp>

#include "name_sources.hpp"
#include "portable.hpp"
#include "recorded_sources.hpp"
#include "stacks_options.hpp"

namespace perfmap::app {
namespace {

/// What only a recording has, or has to be made of its samples.
std::string_view meaningless_option(const StacksOptions& options) {
  const StackFilter& filter = options.stacks.filter;
  if (options.stats) return "--stats";
  if (options.addresses) return "--addresses";
  if (options.lines) return "--lines";
  if (options.inlines) return "--inlines";
  if (options.stacks.stitch) return "--stitch";
  if (options.writing.merge_tiers) return "--merge-tiers";
  if (options.format != "folded" && options.format != "pprof") return "--format";
  if (!filter.tids.empty()) return "--tid";
  if (!filter.comms.empty()) return "--comm";
  if (!filter.events.empty()) return "--event";
  if (filter.from != 0 || filter.to != UINT64_MAX) return "--time";
  if (filter.pids.size() > 1) return "more than one --pid";
  return {};
}

/// The names of processes: what the command line names, or what is found by a pid.
class ProcessNames {
 public:
  ProcessNames(const StacksOptions& options, const Console& console)
      : options_(options), console_(console) {}

  Result<void> open() {
    Result<RecordedJitOptions> jit =
        recorded_jit_options({options_.map_dir, {}, options_.any_owner});
    if (!jit) return Failure(std::move(jit.error()));
    by_pid_ = find_recorded_jit(*std::move(jit), refused_);
    std::vector<Source> sources = options_.sources;
    const auto& pids = options_.stacks.filter.pids;
    if (sources.empty() && !pids.empty() && options_.map_dir.empty()) {
      sources.push_back({std::to_string(pids.front()), Source::As::pid});
    }
    if (sources.empty()) return {};
    Result<NameSources> names = open_name_sources(sources, {}, console_);
    if (!names) return Failure(std::move(names.error()));
    given_ = std::make_shared<JitSources>(std::move(names->maps), std::move(names->dumps));
    return {};
  }

  std::shared_ptr<JitSources> find(pid_t pid) {
    const auto& pids = options_.stacks.filter.pids;
    if (!pids.empty() && pid != 0 && pid != pids.front()) return nullptr;
    if (given_ != nullptr) return given_;
    ProcessInfo process;
    process.pid = pids.empty() ? pid : pids.front();
    return process.pid == 0 ? nullptr : by_pid_(process, {});
  }

  void warn() const { report_refused(refused_, console_); }

 private:
  const StacksOptions& options_;
  const Console& console_;
  RecordedRefusals refused_;
  StackOptions::FindJit by_pid_;
  std::shared_ptr<JitSources> given_;
};

void say(const PprofNamed& report, const std::string& name, const Console& console) {
  console.note(name + ": named " + std::to_string(report.named) + " of " +
               std::to_string(report.jit) + " places in JIT code");
  if (report.without_process != 0) {
    console.warn(name + " does not say which process " + std::to_string(report.without_process) +
                 " places in JIT code are of: --pid, --map and --jitdump do");
  }
}

}  // namespace

ExitCode write_named_profile(const StacksOptions& options, const Input& profile,
                             const Console& console) {
  if (const std::string_view option = meaningless_option(options); !option.empty()) {
    return console.fail(profile.name() + " is a pprof profile, which has no use for " +
                        std::string(option));
  }
  ProcessNames names(options, console);
  const Result<void> opened = names.open();
  if (!opened) return console.fail(opened.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  PprofNaming naming;
  naming.find = [&names](pid_t pid) { return names.find(pid); };
  naming.demangle = options.stacks.demangle;
  const Step step(console, "naming");
  const Result<PprofNamed> report = name_pprof(profile.text(), naming, *out);
  if (!report) return console.fail("cannot read " + profile.name() + ": " + report.error().message);
  if (profile.was_truncated())
    return console.fail(profile.name() + " was cut off while it was read");
  const Result<void> written = out->commit();
  if (!written) return console.fail(written.error());
  names.warn();
  say(*report, profile.name(), console);
  return ExitCode::ok;
}

}  // namespace perfmap::app
