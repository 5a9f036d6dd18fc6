#include "convert_elf.hpp"

#include <perfmap/elf_image.hpp>

#include "portable.hpp"

namespace perfmap::app {
namespace {

Error refused(const std::string& name, const std::string& what) {
  return {Errc::unsupported,
          name + " is " + what + ": only a jitdump has the code of an ELF file",
          0,
          {}};
}

/// The last dump of a process; any other source has one thing behind it.
Result<Jitdump> open_dump(const ConvertOptions& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_inputs(options.source, options.opening, console);
  if (!opened) return Failure(std::move(opened.error()));
  OpenedInput& last = opened->back();
  if (last.kind == SourceKind::jitdump || last.input.text().empty()) {
    return dump_of(std::move(last), options.opening);
  }
  return Failure(refused(last.input.name(), with_article(last.kind)));
}

std::string counted(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void say_counts(const ElfImageCounts& counts, const Diagnostics& problems, const Console& console) {
  console.note("wrote " + counted(counts.functions, "function") + ", " +
               std::to_string(counts.with_lines) + " of them with source lines, and " +
               counted(counts.frames, "frame"));
  if (counts.overlaid + counts.cut != 0) {
    console.note(counted(counts.overlaid, "function") + " had been overlaid by then, and " +
                 std::to_string(counts.cut) + " in part");
  }
  if (counts.without_code != 0) {
    console.note("the dump has no code bytes of " + counted(counts.without_code, "function"));
  }
  if (counts.dropped_frames != 0) {
    console.note("left out " + counted(counts.dropped_frames, "frame") +
                 " that made no sense, or whose code was overlaid");
  }
  if (counts.out_of_reach != 0) {
    console.note("left out " + counted(counts.out_of_reach, "function") +
                 " at addresses that the machine does not have");
  }
  note_skipped_records(console, problems);
}

/// `input` shares its bytes with the dump.
ExitCode commit(OutputFile& out, const Input& input, const Console& console) {
  if (!is_whole(console, input)) return ExitCode::failed;
  const Result<void> written = out.commit();
  return written ? ExitCode::ok : console.fail(written.error());
}

}  // namespace

ExitCode convert_to_elf(const ConvertOptions& options, const Console& console) {
  Result<Jitdump> dump = open_dump(options, console);
  if (!dump) return console.fail(dump.error());
  const Result<void> comparable = check_time(*dump, options.time);
  if (!comparable) return console.fail(comparable.error());
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("an ELF file is nothing for a terminal: name a file with -o");
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  const Input input = dump->input();
  Diagnostics problems(1);
  const Step step(console, "writing", *out);
  const Timeline timeline(*std::move(dump), problems);
  const JitDetails details(timeline.dump());
  const Result<ElfImageCounts> counts = write_elf_image(timeline, details, options.time, *out);
  if (!counts) return console.fail(counts.error());
  const ExitCode code = commit(*out, input, console);
  if (code == ExitCode::ok) say_counts(*counts, problems, console);
  return code;
}

}  // namespace perfmap::app
