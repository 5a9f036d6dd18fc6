// SPDX-License-Identifier: MIT
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
  return console.fail("cannot read " + profile.name() + ": " + error.message());
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

std::string_view bytes_of(const LoadedProfile& loaded) {
  return loaded.profile ? loaded.profile->text() : loaded.reading->recording().input().text();
}

/// The earlier one with the same bytes, or null.
const LoadedProfile* find_same(const std::deque<LoadedProfile>& some, const LoadedProfile& one) {
  const auto found = std::ranges::find_if(some, [&](const LoadedProfile& other) {
    return &other != &one && bytes_of(other) == bytes_of(one);
  });
  return found == some.end() ? nullptr : &*found;
}

const std::string& title_of(const LoadedProfile& loaded) { return loaded.report->profile().title; }

ExitCode open_side(std::span<const std::string> paths, const ProfileRequest& request,
                   std::deque<LoadedProfile>& side, const Console& console) {
  for (const std::string& path : paths) {
    LoadedProfile& one = side.emplace_back();
    const ExitCode opened = open_profile(path, request, one, console);
    if (opened != ExitCode::ok) return opened;
    const LoadedProfile* const same = find_same(side, one);
    if (same == nullptr) continue;
    console.warn(one_line(path, true) + " is the same recording as " +
                 one_line(title_of(*same), true) + ", and counts once");
    side.pop_back();
  }
  return ExitCode::ok;
}

/// A recording, and the program that most of its samples are of.
struct RecordedProgram {
  const LoadedProfile* recording;
  std::string_view program;
};

std::vector<RecordedProgram> programs_of(const std::deque<LoadedProfile>& side) {
  std::vector<RecordedProgram> programs;
  for (const LoadedProfile& one : side) {
    const auto events = one.report->events();
    if (events.empty() || events.front().program.empty()) continue;
    programs.push_back({&one, events.front().program});
  }
  return programs;
}

/// Warns of the first that has another program than the first of its side.
void note_mixed(std::span<const RecordedProgram> side, const Console& console) {
  const auto other = std::ranges::find_if(
      side, [&side](const RecordedProgram& one) { return one.program != side.front().program; });
  if (other == side.end()) return;
  const auto text = [](const RecordedProgram& one) {
    return one_line(std::string(one.program), true) + " in " +
           one_line(title_of(*one.recording), true);
  };
  console.warn("recordings of one side are of different programs: " + text(side.front()) +
               ", and " + text(*other));
}

}  // namespace

ExitCode open_profile(const std::string& path, const ProfileRequest& request, LoadedProfile& loaded,
                      const Console& console) {
  Result<Input> input = open_recorded_input(path, console);
  if (!input) return console.fail(input.error());
  const Result<void> other = check_other_file(request.output, *input);
  if (!other) return console.fail(other.error());
  // Each recording directory has its own names.
  RecordedStacksOptions of_file = request.options;
  of_file.recording = path;
  const ProfileRequest own{of_file, request.names, request.counting, request.output};
  return open_profile(*std::move(input), own, loaded, console);
}

ExitCode open_profile(Input input, const ProfileRequest& request, LoadedProfile& loaded,
                      const Console& console) {
  const bool is_pprof = !is_recording(input.text()) && may_be_pprof(input.text());
  return (is_pprof ? open_pprof : open_reading)(std::move(input), request, loaded, console);
}

ExitCode read_profile(LoadedProfile& loaded, const Console& console, const VisitSample& visit) {
  return read_samples(loaded, console, [&](const StackSample& sample, std::uint64_t count) {
    loaded.report->add(sample, count);
    if (visit) visit(sample, count);
  });
}

ExitCode read_samples(LoadedProfile& loaded, const Console& console, const VisitSample& visit) {
  if (!loaded.pprof) {
    return loaded.reading->read([&](const StackSample& sample) { visit(sample, 1); },
                                loaded.problems, console);
  }
  const Input& profile = *loaded.profile;
  const Step step(console, "reading " + profile.name());
  const Result<void> read = loaded.pprof->read(visit);
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

ExitCode open_sides(std::span<const std::string> baselines, std::span<const std::string> newer,
                    const ProfileRequest& request, LoadedSides& sides, const Console& console) {
  ExitCode opened = open_side(baselines, request, sides.before, console);
  if (opened == ExitCode::ok) opened = open_side(newer, request, sides.after, console);
  if (opened != ExitCode::ok) return opened;
  for (const LoadedProfile& one : sides.after) {
    const LoadedProfile* const same = find_same(sides.before, one);
    if (same == nullptr) continue;
    console.warn(one_line(title_of(one), true) + " is the same recording as the baseline " +
                 one_line(title_of(*same), true));
  }
  return ExitCode::ok;
}

void LoadedSides::note_empty(const StackFilter& filter, const Console& console) const {
  for (const std::deque<LoadedProfile>* const side : {&before, &after}) {
    for (const LoadedProfile& one : *side) {
      if (one.report->events().empty()) note_profile(one, filter, console);
    }
  }
}

void LoadedSides::note(const StackFilter& filter, const Console& console) const {
  for (const LoadedProfile& one : before) note_profile(one, filter, console);
  for (const LoadedProfile& one : after) note_profile(one, filter, console);
}

void note_programs(const LoadedSides& sides, const Console& console) {
  const std::vector<RecordedProgram> before = programs_of(sides.before);
  const std::vector<RecordedProgram> after = programs_of(sides.after);
  note_mixed(before, console);
  note_mixed(after, console);
  if (before.empty() || after.empty() || before[0].program == after[0].program) return;
  console.warn("the recordings are of different programs: " +
               one_line(std::string(before[0].program), true) + " before, and " +
               one_line(std::string(after[0].program), true) + " now");
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
  if (!options.sources.empty()) {
    return invalid(
        "--baseline does not support further sources: the recordings have other processes");
  }
  const auto count = std::ranges::count(others, "-") + (options.recording == "-" ? 1 : 0);
  if (count > 1) return invalid("standard input can be a source only once");
  return {};
}

}  // namespace perfmap::app
