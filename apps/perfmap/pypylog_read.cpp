#include "pypylog_read.hpp"

#include <perfmap/expanded_input.hpp>
#include <perfmap/source_kind.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "opened_input.hpp"
#include "recording_input.hpp"

namespace perfmap::app {
namespace {

constexpr std::size_t kShownProblems = 3;
constexpr std::uint64_t kMostBeforeSection = std::uint64_t{1} << 30;

bool is_regular(const std::string& path) {
  struct stat status {};
  const int failed = path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status);
  // What cannot be opened is told by Input.
  return failed != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

/// A log may begin in the middle of a section, with any text; what no log begins with is refused.
Result<void> check_kind(std::string_view text, const std::string& name) {
  const SourceKind kind = detect_kind(text);
  const bool may_be_log = kind == SourceKind::pypylog || kind == SourceKind::perf_map ||
                          (kind == SourceKind::json && !text.empty());
  if (may_be_log) return {};
  return Failure(unsupported(name, kind));
}

}  // namespace

Result<LogSource> LogSource::open(const std::string& path, bool keep) {
  LogSource source(path);
  if (keep || is_regular(path)) {
    Result<Input> input =
        path == "-" ? Input::from_descriptor(STDIN_FILENO, "-") : Input::open(path);
    if (input) input = expanded(*std::move(input));
    if (!input) return Failure(std::move(input.error()));
    source.input_ = *std::move(input);
  } else if (path == "-") {
    source.blocks_ = LineBlocks::of_descriptor(STDIN_FILENO, "-");
  } else {
    Result<LineBlocks> blocks = LineBlocks::open(path);
    if (!blocks) return Failure(std::move(blocks.error()));
    source.blocks_ = *std::move(blocks);
  }
  return source;
}

Result<void> LogSource::check_output(const std::string& path) const {
  return input_ ? check_other_file(path, *input_) : Result<void>();
}

/// What comes through a pipe and is compressed has to be there as a whole.
Result<void> LogSource::expand_rest(std::string bytes) {
  for (;;) {
    const Result<std::string_view> block = blocks_->next();
    if (!block) return Failure(block.error());
    if (block->empty()) break;
    bytes += *block;
    if (bytes.size() <= kMostExpandedBytes) continue;
    return Failure({Errc::too_large, "cannot read " + name_ + ": unpack it first", 0, {}});
  }
  Result<Input> input = expanded(Input::from_text(std::move(bytes), name_));
  if (!input) return Failure(std::move(input.error()));
  input_ = *std::move(input);
  return {};
}

/// Whether there was anything.
Result<bool> LogSource::feed(LoopProfile& profile) {
  if (input_) {
    const Result<void> fits = check_kind(input_->text(), name_);
    if (!fits) return Failure(fits.error());
    read_pypylog(*input_, profile);
    if (!input_->was_truncated()) return !input_->text().empty();
    return Failure({Errc::io, name_ + " was cut off while it was read", 0, {}});
  }
  std::uint64_t read = 0;
  for (bool is_first = true;; is_first = false) {
    const Result<std::string_view> block = blocks_->next();
    if (!block) return Failure(block.error());
    if (block->empty()) return !is_first;
    if (is_first && is_expandable(*block)) {
      const Result<void> held = expand_rest(std::string(*block));
      return held ? feed(profile) : Failure(held.error());
    }
    const Result<void> fits = is_first ? check_kind(*block, name_) : Result<void>();
    if (!fits) return Failure(fits.error());
    profile.add(*block);
    // A pipe may never end: without a section after so many bytes it is taken for no log.
    read += block->size();
    if (read > kMostBeforeSection && profile.threads().empty()) return true;
  }
}

Result<void> LogSource::read(LoopProfile& profile, const Console& console) {
  const Step step(console, "reading " + (name_ == "-" ? "standard input" : name_));
  const Result<bool> any = feed(profile);
  if (!any) return Failure(any.error());
  profile.finish();
  if (!*any || !profile.threads().empty()) return {};
  return Failure(
      {Errc::bad_format, name_ + " is no PYPYLOG: no line of it opens or closes a section", 0, {}});
}

LoopProfile::Options profile_options(const PypylogOptions& options) {
  LoopProfile::Options reading;
  reading.base = options.ticks;
  reading.count_inner_bridges = options.count_inner_bridges;
  if (options.from) reading.from = options.from->tick;
  if (options.until) reading.to = options.until->tick;
  return reading;
}

Result<void> check_ticks(const PypylogOptions& options, const LoopProfile& profile) {
  for (const auto& tick : {options.from, options.until}) {
    if (!tick || !tick->is_hex || profile.base() == TickBase::hex) continue;
    return Failure({Errc::invalid_argument,
                    tick->text + " is hexadecimal, and the log's ticks are read as decimal numbers "
                                 "(--ticks hex)",
                    0,
                    {}});
  }
  const bool is_hex = profile.base() == TickBase::hex;
  const auto value = [&](const TypedTick& tick) { return is_hex ? tick.tick.hex : tick.tick.dec; };
  if (options.from && options.until && value(*options.until) < value(*options.from)) {
    return Failure({Errc::invalid_argument,
                    "--to " + options.until->text + " is before --from " + options.from->text,
                    0,
                    {}});
  }
  return {};
}

/// By what loops are ranked that have no ticks.
static std::string rank_of(const LoopProfile& profile, bool has_samples) {
  const auto loops = profile.loops().all();
  const bool has_counts = std::any_of(loops.begin(), loops.end(), [](const CompiledLoop& loop) {
    return loop.iterations().has_value();
  });
  if (has_samples) return "are ranked by samples";
  return has_counts ? "are ranked by counts" : "stand in the order of the log";
}

void note_log(const LogSource& source, const LoopProfile& profile, bool has_samples,
              const Console& console) {
  if (profile.threads().empty()) return;
  const bool is_hex = profile.base() == TickBase::hex;
  console.note(source.name() + ": ticks are read as " + (is_hex ? "hexadecimal" : "decimal") +
               " numbers");
  if (!profile.has_events() && !profile.loops().all().empty()) {
    console.note(source.name() + ": no jit-profile events: loops have no ticks, and " +
                 rank_of(profile, has_samples));
  }
  const Diagnostics& problems = profile.problems();
  const auto& items = problems.items();
  for (std::size_t i = 0; i < std::min(items.size(), kShownProblems); ++i) {
    const std::uint64_t line = items[i].where.line;  // 0: at the log's end
    console.warn(source.name() + (line == 0 ? "" : ":" + std::to_string(line)) + ": " +
                 items[i].message);
  }
  if (problems.total() > kShownProblems) {
    console.warn(source.name() + ": " + std::to_string(problems.total()) + " problems in all");
  }
}

}  // namespace perfmap::app
