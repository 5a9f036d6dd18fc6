#include <algorithm>
#include <perfmap/loop_stacks.hpp>

#include "pypylog_output.hpp"

namespace perfmap::app {
namespace {

StackProfile profile_called(StackProfile profile, const std::string& name) {
  profile.title = name;
  profile.exporter = std::string("perfmap ") + PERFMAP_VERSION;
  return profile;
}

std::unique_ptr<StackWriter> make_writer(const PypylogOptions& options, const FrameTable& table,
                                         StackProfile profile, OutputFile& out) {
  StackWriter::Options writing;
  writing.marks = false;
  writing.lines = options.format == "speedscope";
  return StackWriter::make(*stack_format(options.format), out, table, std::move(profile), writing);
}

Result<void> write_spans(const PypylogOptions& options, LogSource& source,
                         const LoopProfile& profile, OutputFile& out, const Console& console) {
  LoopStacks stacks(profile);
  const auto writer =
      make_writer(options, stacks.table(), profile_called(stacks.profile(), source.name()), out);
  LoopProfile::Options reading = profile_options(options);
  reading.base = profile.base();
  reading.visit = [&](const LoopSpan& span) { stacks.add(span, *writer); };
  LoopProfile again(std::move(reading));
  const Result<void> read = source.read(again, console);
  return read ? writer->finish() : read;
}

}  // namespace

Result<void> write_loop_stacks(const PypylogOptions& options, LogSource& source,
                               const LoopProfile& profile,
                               const std::optional<SampledLoops>& samples, OutputFile& out,
                               const Console& console) {
  if (!samples) return write_spans(options, source, profile, out, console);
  FrameTable table;
  StackProfile about;
  about.events.push_back({.name = "samples", .is_weighted = true});
  const auto writer =
      make_writer(options, table, profile_called(std::move(about), source.name()), out);
  add_sampled_loops(profile, *samples, "pypy", table, *writer);
  return writer->finish();
}

}  // namespace perfmap::app
