#include "loaded_profile.hpp"

#include <algorithm>
#include <utility>

namespace perfmap::app {
namespace {

/// The first option that a pprof profile does not support; empty if none is given.
std::string_view meaningless_option(const ProfileRequest& request) {
  const RecordedStacksOptions& options = request.options;
  const StackFilter& filter = options.stacks.filter;
  const StackOptions standard;
  if (filter.from != 0) return "--from";
  if (filter.to != UINT64_MAX) return "--to-time";
  if (!options.sources.empty()) return "other sources of names (perfmap stacks names it)";
  if (!options.map_dir.empty()) return "--map-dir";
  if (!options.symfs.empty()) return "--symfs";
  if (!options.kallsyms.empty()) return "--kallsyms";
  if (options.stacks.stitch) return "--stitch";
  if (options.stacks.unwind.scan) return "--scan";
  return options.stacks.unwind.max_frames == standard.unwind.max_frames ? "" : "--max-stack";
}

ExitCode fail_to_read(const Input& profile, const Error& error, const Console& console) {
  return console.fail("cannot read " + profile.name() + ": " + error.message);
}

ExitCode open_pprof(Input input, const ProfileRequest& request, LoadedProfile& loaded,
                    const Console& console) {
  const Input& profile = loaded.profile.emplace(std::move(input));
  if (const std::string_view option = meaningless_option(request); !option.empty()) {
    return console.fail(profile.name() + " is a pprof profile, which does not support " +
                        std::string(option));
  }
  PprofReader::Options reading;
  reading.filter = request.options.stacks.filter;
  reading.kernel = request.options.stacks.kernel;
  Result<PprofReader> reader = PprofReader::open(profile.text(), reading);
  if (!reader) return fail_to_read(profile, reader.error(), console);
  PprofReader& pprof = loaded.pprof.emplace(*std::move(reader));
  StackProfile about = pprof.profile();
  about.title = profile.name();
  loaded.report.emplace(pprof.table(), std::move(about), request.counting);
  return ExitCode::ok;
}

ExitCode open_reading(Input input, const ProfileRequest& request, LoadedProfile& loaded,
                      const Console& console) {
  Result<std::unique_ptr<Reading>> reading =
      Reading::open(std::move(input), request.options, request.names, console);
  if (!reading) return console.fail(reading.error());
  loaded.reading = *std::move(reading);
  loaded.report.emplace(loaded.table(), profile_of(loaded.reading->recording()), request.counting);
  return ExitCode::ok;
}

}  // namespace

ExitCode open_profile(const std::string& path, const ProfileRequest& request, LoadedProfile& loaded,
                      const Console& console) {
  Result<Input> input = open_recorded_input(path, console);
  if (!input) return console.fail(input.error());
  const Result<void> other = check_other_file(request.output, *input);
  if (!other) return console.fail(other.error());
  const bool is_pprof = !is_recording(input->text()) && may_be_pprof(input->text());
  // Each recording directory has its own names.
  RecordedStacksOptions of_file = request.options;
  of_file.recording = path;
  const ProfileRequest own{of_file, request.names, request.counting, request.output};
  return (is_pprof ? open_pprof : open_reading)(*std::move(input), own, loaded, console);
}

ExitCode read_profile(LoadedProfile& loaded, const Console& console, const VisitSample& visit) {
  const auto add = [&](const StackSample& sample, std::uint64_t count) {
    loaded.report->add(sample, count);
    if (visit) visit(sample, count);
  };
  if (!loaded.pprof) {
    return loaded.reading->read([&](const StackSample& sample) { add(sample, 1); }, loaded.problems,
                                console);
  }
  const Input& profile = *loaded.profile;
  const Step step(console, "reading " + profile.name());
  const Result<void> read = loaded.pprof->read(add);
  if (!read) return fail_to_read(profile, read.error(), console);
  return profile.was_truncated() ? console.fail(profile.name() + " was truncated while it was read")
                                 : ExitCode::ok;
}

void note_profile(const LoadedProfile& loaded, const StackFilter& filter, const Console& console) {
  if (loaded.pprof) {
    note_filters(loaded.pprof->profile().events, filter, loaded.pprof->statistics(), "", console);
    return;
  }
  loaded.reading->warn(console);
  note_stacks(*loaded.reading, filter, loaded.reading->reader().statistics(), loaded.problems, true,
              console);
}

void add_normalize(CommandOptions& command, ComparisonOptions& comparing, Option baseline) {
  const auto take = [&comparing](const std::string& text) {
    using Normalize = ComparisonOptions::Normalize;
    comparing.function = text;
    comparing.normalize = text == "samples" ? Normalize::samples
                          : text == "time"  ? Normalize::time
                          : text == "none"  ? Normalize::none
                                            : Normalize::function;
  };
  command
      .value("--normalize", take, "HOW",
             "Compare shares of the samples, load over time, processor time as it is, or cost by "
             "sample of a function: samples, time, none or its name (default: samples)")
      .check([](const std::string& text) { return text.empty() ? "no function is named" : ""; })
      .needs(baseline);
}

Result<void> check_compared(const RecordedStacksOptions& options,
                            std::span<const std::string> others) {
  const auto fail = [](const std::string& why) -> Result<void> {
    return Failure({Errc::invalid_argument, why, 0, {}});
  };
  if (!options.sources.empty()) {
    return fail("--baseline does not support further sources: the recordings have other processes");
  }
  const auto count = std::ranges::count(others, "-") + (options.recording == "-" ? 1 : 0);
  if (count > 1) return fail("standard input can be a source only once");
  return {};
}

}  // namespace perfmap::app
