#include <filesystem>
#include <perfmap/debuginfod.hpp>
#include <perfmap/module_cache.hpp>
#include <perfmap/pprof_names.hpp>
#include <set>

#include "debug_servers.hpp"
#include "doubt_note.hpp"
#include "kernel_source.hpp"
#include "name_sources.hpp"
#include "opened_input.hpp"
#include "portable.hpp"
#include "recorded_sources.hpp"
#include "recording_input.hpp"
#include "stacks_options.hpp"

namespace perfmap::app {
namespace {

using Names = StackOptions::Names;

Names names_of(const StacksOptions& options) {
  if (options.addresses) return Names::none;
  if (options.inlines) return Names::inlines;
  return options.lines ? Names::lines : Names::symbols;
}

/// Everything that turns samples into stacks, and must outlive that.
class Reading {
 public:
  static Result<std::unique_ptr<Reading>> open(Input input, const StacksOptions& options,
                                               const Console& console) {
    Result<Recording> recording = Recording::open(std::move(input));
    if (!recording) return Failure(std::move(recording.error()));
    ModuleCacheOptions cache;
    cache.debug_directories = {"/usr/lib/debug"};
    if (options.debuginfod) {
      Result<Debuginfod> servers = Debuginfod::open();
      if (!servers) return Failure(std::move(servers.error()));
      cache.fetch = asking(*servers, console);
    }
    std::unique_ptr<Reading> reading(new Reading(*std::move(recording), std::move(cache)));
    const Result<void> ready = reading->prepare(options, console);
    if (!ready) return Failure(ready.error());
    return reading;
  }

  const Recording& recording() const noexcept { return recording_; }
  StackReader& reader() noexcept { return *reader_; }

  /// What was missing or refused on the way.
  void warn(const Console& console) const {
    report_refused(refused_, console);
    for (const Error& error : reader_->failures()) console.warn(error.message);
    note_without_lines(reader_->without_lines(), console);
    kernel_.note(console);
  }

 private:
  Reading(Recording recording, ModuleCacheOptions cache)
      : recording_(std::move(recording)), cache_(std::move(cache)) {}

  Result<void> prepare(const StacksOptions& options, const Console& console) {
    StackOptions stacks = options.stacks;
    stacks.names = names_of(options);
    Result<RecordedJitOptions> jit =
        recorded_jit_options({options.map_dir, options.symfs, options.any_owner});
    if (!jit) return Failure(std::move(jit.error()));
    stacks.open_module = open_recorded_modules(cache_, recording_, *jit);
    if (!options.sources.empty()) {
      Result<NameSources> names = open_name_sources(options.sources, {}, console);
      if (!names) return Failure(std::move(names.error()));
      jit->given = std::make_shared<JitSources>(std::move(names->maps), std::move(names->dumps));
    }
    stacks.find_parents = find_recorded_parents(recording_, *jit);
    stacks.find_jit = find_recorded_jit(recording_, *std::move(jit), refused_);
    const Result<void> given =
        options.kallsyms.empty() ? Result<void>() : kernel_.open(options.kallsyms);
    if (!given) return Failure(given.error());
    stacks.find_kallsyms = [this](const RecordedKernel& kernel) { return kernel_.text_of(kernel); };
    reader_.emplace(recording_, std::move(stacks));
    return {};
  }

  Recording recording_;
  ModuleCache cache_;
  RecordedRefusals refused_;
  KernelSource kernel_;
  std::optional<StackReader> reader_;
};

std::string share_of(std::uint64_t position, std::uint64_t size) {
  return size == 0 ? "" : " (" + std::to_string(position * 100 / size) + " %)";
}

/// What a damaged recording does not have: the first damages one by one, others in a sum.
void note_damage(const Recording& recording, const StackStatistics& statistics,
                 const Diagnostics& problems, const Console& console) {
  const std::string& name = recording.input().name();
  if (recording.facts().was_killed) {
    console.warn(name + ": its recorder was killed: what it had not written is missing");
  }
  for (const Diagnostic& problem : problems.items()) {
    console.warn(name + ":+0x" + hex_text(problem.where.offset) + ": " + problem.message);
  }
  if (problems.total() > problems.items().size()) {
    console.warn(name + ": " + std::to_string(problems.total()) + " damages, " +
                 std::to_string(statistics.lost_bytes) + " bytes of records are left out");
  }
}

/// The options of which a sample must pass each.
std::string filters_of(const StackFilter& filter) {
  std::string names;
  const auto add = [&](bool is_given, const char* name) {
    if (is_given) names += (names.empty() ? "" : " and ") + std::string(name);
  };
  add(!filter.pids.empty(), "--pid");
  add(!filter.tids.empty(), "--tid");
  add(!filter.comms.empty(), "--comm");
  add(!filter.events.empty(), "--event");
  add(filter.from != 0 || filter.to != UINT64_MAX, "--time");
  return names;
}

/// A name that was mistyped looks like a recording without samples.
void note_filters(const Recording& recording, const StackFilter& filter,
                  const StackStatistics& statistics, const Console& console) {
  if (statistics.total.samples != 0 || statistics.filtered == 0) return;
  std::string names;
  for (const RecordedEvent& event : recording.events()) {
    names += (names.empty() ? "" : ", ") + event.name;
  }
  console.note("none of " + std::to_string(statistics.filtered) + " samples passes " +
               filters_of(filter) +
               (filter.events.empty() ? "" : "; the recording's events are " + names));
}

void note_losses(const StackStatistics& statistics, const Console& console) {
  const auto say = [&](std::uint64_t count, const std::string& what) {
    if (count != 0) console.warn(std::to_string(count) + " " + what);
  };
  say(statistics.lost, "events were lost when this was recorded");
  say(statistics.out_of_order, "records came too late to be put in order");
}

/// Formats that have no place for the event add up what should not be.
void note_events(const StacksOptions& options, const Recording& recording,
                 const std::set<std::uint32_t>& seen, const Console& console) {
  const bool has_place = options.format != "folded" && options.format != "html" &&
                         !(options.stats && options.output == "-");
  if (has_place || seen.size() < 2) return;
  std::string names;
  for (const std::uint32_t event : seen) {
    if (event < recording.events().size())
      names += (names.empty() ? "" : ", ") + recording.events()[event].name;
  }
  console.note("samples of several events are counted together: " + names +
               " (--event NAME chooses)");
}

ExitCode read_all(Reading& reading, StackWriter* writer, std::set<std::uint32_t>& events,
                  Diagnostics& problems, const Console& console) {
  const std::string what = "reading " + reading.recording().input().name();
  const Step step(console, what);
  const std::uint64_t size = reading.recording().input().facts().size;
  std::uint64_t percent = 0;
  reading.reader().read(
      [&](const StackSample& sample) {
        events.insert(sample.event);
        if (writer != nullptr) writer->add(sample);
      },
      problems,
      [&](std::uint64_t position) {
        if (size == 0 || std::exchange(percent, position * 100 / size) == percent) return;
        console.progress().change(what + share_of(position, size));
      });
  if (reading.recording().input().was_truncated()) {
    return console.fail(reading.recording().input().name() + " was cut off while it was read");
  }
  return ExitCode::ok;
}

void write_table(const StacksOptions& options, const StackStatistics& statistics,
                 const Console& console) {
  if (options.format == "jsonl") {
    write_stack_lines(statistics, console.out());
  } else {
    write_stack_table(statistics, console.out());
  }
}

Result<void> check_not_terminal(const StacksOptions& options, const Console& console) {
  if (options.output != "-" || !console.out_is_terminal()) return {};
  return Failure(Error{Errc::invalid_argument,
                       "a pprof profile is nothing for a terminal: name a file with -o",
                       0,
                       {}});
}

/// A directory that is not there would only be missed in silence.
Result<void> check_directories(const StacksOptions& options) {
  for (const std::string& path : {options.map_dir, options.symfs}) {
    std::error_code error;
    if (path.empty() || std::filesystem::is_directory(path, error)) continue;
    if (!error) error = std::make_error_code(std::errc::not_a_directory);
    return Failure(Error{Errc::not_found, "cannot open " + path + ": " + error.message(), 0, {}});
  }
  return {};
}

/// What a user has to know of the stacks that were written.
void note_all(const Reading& reading, const StackFilter& filter, const StackStatistics& statistics,
              const Diagnostics& problems, const Console& console) {
  note_filters(reading.recording(), filter, statistics, console);
  note_damage(reading.recording(), statistics, problems, console);
  note_losses(statistics, console);
  const StackCounts& total = statistics.total;
  note_doubts({total.frames, total.doubtful, total.doubts}, "frames", console);
}

}  // namespace

ExitCode write_stacks(const StacksOptions& options, const Console& console) {
  const bool only_table = options.stats && options.output == "-";
  const StackFormat format = stack_format(options.format).value_or(StackFormat::folded);
  if (format == StackFormat::pprof && !only_table) {
    const Result<void> fits = check_not_terminal(options, console);
    if (!fits) return console.fail(fits.error());
  }
  const Result<void> there = check_directories(options);
  if (!there) return console.fail(there.error());
  Result<Input> input = open_recording_input(options.recording);
  if (!input) return console.fail(input.error());
  const Result<void> other = check_other_file(options.output, *input);
  if (!other) return console.fail(other.error());
  if (!is_recording(input->text()) && may_be_pprof(input->text())) {
    const Result<void> fits = check_not_terminal(options, console);
    return fits ? write_named_profile(options, *input, console) : console.fail(fits.error());
  }
  Result<std::unique_ptr<Reading>> reading = Reading::open(*std::move(input), options, console);
  if (!reading) return console.fail(reading.error());
  StackReader& reader = (*reading)->reader();
  std::optional<OutputFile> out;
  std::unique_ptr<StackWriter> writer;
  if (!only_table) {
    Result<OutputFile> opened = open_output(options.output);
    if (!opened) return console.fail(opened.error());
    out.emplace(*std::move(opened));
    StackProfile profile = profile_of((*reading)->recording());
    profile.exporter = std::string("perfmap ") + PERFMAP_VERSION;
    StackWriter::Options writing = options.writing;
    writing.lines = options.lines || options.inlines;
    writing.doubt_kinds = console.verbose();
    writer = StackWriter::make(format, *out, reader.table(), std::move(profile), writing);
  }
  Diagnostics problems(3);
  std::set<std::uint32_t> events;
  const ExitCode read = read_all(**reading, writer.get(), events, problems, console);
  if (read != ExitCode::ok) return read;
  if (writer != nullptr) {
    const Result<void> finished = writer->finish();
    const Result<void> written = finished ? out->commit() : finished;
    if (!written) return console.fail(written.error());
  }
  if (options.stats) write_table(options, reader.statistics(), console);
  (*reading)->warn(console);
  note_events(options, (*reading)->recording(), events, console);
  note_all(**reading, options.stacks.filter, reader.statistics(), problems, console);
  return ExitCode::ok;
}

}  // namespace perfmap::app
