// SPDX-License-Identifier: MIT
#include "merged_recordings.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/snapshot.hpp>
#include <perfmap/profile/source.hpp>
#include <perfmap/text.hpp>
#include <set>
#include <sys/stat.h>
#include <utility>

#include "perfmap/text.hpp"
#include "recording.hpp"
#include "unpacked.hpp"

namespace perfmap::app {
namespace {

bool has_value(std::string_view label) { return label.find('=') != std::string_view::npos; }

std::string check_label(const std::string& text) {
  if (has_value(text)) {
    const Result<RecordingLabel> label = parse_label(text);
    return label ? "" : label.error().message();
  }
  if (is_recorded_label(text)) return "";
  return "recordings have no '" + text + "', but " + recorded_label_names() +
         "; KEY=VALUE is any other label";
}

Result<std::vector<ListedRecording>> read_list(const std::string& path, bool ends_with_nul) {
  OpenPolicy policy;
  policy.keep_descriptor = false;
  const Result<Input> input =
      path == "-" ? Input::from_descriptor(0, "-", policy) : Input::open(path, policy);
  if (!input) return failure(input);
  Result<std::vector<ListedRecording>> listed = parse_recording_list(input->text(), ends_with_nul);
  if (listed) return listed;
  const Error& why = listed.error();
  return invalid(path + ":" + std::to_string(why.where.line) + ": " + why.message());
}

/// The recordings of all lists, of which none may be empty.
Result<std::vector<ListedRecording>> read_lists(const MergingOptions& options) {
  std::vector<ListedRecording> all;
  for (const std::string& path : options.lists) {
    Result<std::vector<ListedRecording>> listed = read_list(path, options.ends_with_nul);
    if (!listed) return listed;
    if (listed->empty()) return invalid("the list " + path + " has no recordings");
    std::ranges::move(*listed, std::back_inserter(all));
  }
  return all;
}

/// What identifies a file, whatever path it has.
using FileId = std::pair<std::uint64_t, std::uint64_t>;

std::optional<FileId> file_id(const std::string& path) {
  struct stat status {};
  const std::string file = recording_in(path).value_or(path);
  const int failed = path == "-" ? ::fstat(0, &status) : ::stat(file.c_str(), &status);
  if (failed != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId(status.st_dev, status.st_ino);
}

/// A file and another path of it.
std::string same_text(const std::string& path, const ListedRecording& known) {
  const std::string shown = one_line(path, true);
  return path == known.path ? shown + " is given twice"
                            : shown + " is the same recording as " + one_line(known.path, true);
}

/// Leaves out recordings that are given again, also by another path.
void drop_repeated(std::vector<ListedRecording>& all, const Console& console) {
  std::map<std::string, const ListedRecording*> paths;
  std::map<FileId, const ListedRecording*> files;
  std::vector<ListedRecording> kept;
  kept.reserve(all.size());
  for (ListedRecording& one : all) {
    const std::optional<FileId> file = file_id(one.path);
    const auto path = paths.find(one.path);
    const ListedRecording* known = path == paths.end() ? nullptr : path->second;
    if (known == nullptr && file && files.contains(*file)) known = files[*file];
    if (known != nullptr) {
      const bool has_others = !one.labels.empty() && one.labels != known->labels;
      console.warn(same_text(one.path, *known) + ", and counts once" +
                   (has_others ? ", with the labels that it was first given" : ""));
      continue;
    }
    kept.push_back(std::move(one));
    paths.emplace(kept.back().path, &kept.back());
    if (file) files.emplace(*file, &kept.back());
  }
  all = std::move(kept);
}

/// Fails if the output would replace a file that is read.
Result<void> check_output(const std::string& output, const std::vector<std::string>& lists,
                          const std::vector<ListedRecording>& recordings) {
  const std::optional<FileId> written = output == "-" ? std::nullopt : file_id(output);
  if (!written) return {};
  const auto is_it = [&](const std::string& path) { return file_id(path) == written; };
  const std::string shown = "cannot write to " + one_line(output, true);
  if (std::ranges::any_of(lists, is_it)) {
    return Failure(Error::refused(shown + ": it is the list of --recordings"));
  }
  if (std::ranges::none_of(recordings, is_it, &ListedRecording::path)) return {};
  return Failure(Error::refused(shown + ": it is one of the recordings"));
}

/// Fails if standard input would be read twice.
Result<void> check_stdin(const std::vector<std::string>& lists,
                         const std::vector<ListedRecording>& recordings) {
  const auto all = std::ranges::count(lists, "-") +
                   (std::ranges::find(recordings, "-", &ListedRecording::path) != recordings.end());
  return all <= 1 ? Result<void>() : invalid("standard input can be a source only once");
}

/// All recordings in order, each once.
Result<std::vector<ListedRecording>> list_recordings(const std::string& first,
                                                     const MergingOptions& options,
                                                     const std::string& output,
                                                     const Console& console) {
  std::vector<ListedRecording> all;
  if (!first.empty()) all.push_back({first});
  for (const std::string& path : options.further) all.push_back({path});
  Result<void> checked = check_stdin(options.lists, all);
  if (!checked) return failure(checked);
  Result<std::vector<ListedRecording>> listed = read_lists(options);
  if (!listed) return listed;
  const auto has_labels = [](const ListedRecording& one) { return !one.labels.empty(); };
  if (!options.keeps_labels && std::ranges::any_of(*listed, has_labels)) {
    console.warn("the output has no place for labels: those of --recordings are left out");
  }
  std::ranges::move(*listed, std::back_inserter(all));
  drop_repeated(all, console);
  checked = check_stdin(options.lists, all);
  if (checked) checked = check_output(output, options.lists, all);
  if (!checked) return failure(checked);
  return all;
}

MergedStacks::Labels labels_of(const MergingOptions& options, const ListedRecording& recording,
                               const StackProfile& profile) {
  MergedStacks::Labels labels;
  for (const std::string& label : options.labels) {
    if (has_value(label)) {
      labels.fixed.push_back(*parse_label(label));  // checked by check_label()
    } else if (auto value = recorded_label(label, profile)) {
      labels.fixed.emplace_back(label, *std::move(value));
    }
    labels.build = labels.build || label == "build";
  }
  for (const RecordingLabel& label : recording.labels) labels.fixed.push_back(label);
  return labels;
}

/// What reading a recording printed, and whether it failed.
struct ReadRecording {
  ExitCode status = ExitCode::ok;
  std::vector<Console::Message> messages = {};
};

std::optional<MergedStacks> read_one(const ListedRecording& recording,
                                     const ProfileRequest& request, const MergingOptions& merging,
                                     ReadRecording& read, const Console& console) {
  const Console own = console.keeping(read.messages);
  MergedStacks stacks;
  {
    LoadedProfile loaded;
    read.status = open_profile(recording.path, request, loaded, own);
    if (read.status == ExitCode::ok) {
      const StackProfile& profile = loaded.report->profile();
      stacks.begin(loaded.table(), profile, labels_of(merging, recording, profile));
      read.status = read_samples(loaded, own, [&](const StackSample& sample, std::uint64_t count) {
        stacks.add(sample, count);
      });
    }
    if (read.status == ExitCode::ok) note_profile(loaded, request.options.stacks.filter, own);
  }
  remove_unpacked(recording.path);
  return read.status == ExitCode::ok ? std::optional(std::move(stacks)) : std::nullopt;
}

/// Prints the first messages about recordings. Those that differ only in names and numbers are one.
class Messages {
 public:
  explicit Messages(const Console& console) : console_(console) {}

  void add(const std::string& path, const ReadRecording& read) {
    for (const Console::Message& message : read.messages) {
      const bool is_error = message.kind == Console::Message::Kind::error;
      Group& group = is_error ? errors_ : others_;
      const std::string key = is_error ? path + message.text : kind_of(message.text, path);
      const auto [known, is_new] = group.numbers.try_emplace(key, group.kept.size());
      if (!is_new) {
        ++group.kept[known->second].recordings;
        continue;
      }
      const bool has_name = message.text.find(path) != std::string::npos;
      group.kept.push_back({{message.kind, message.text}, has_name ? "" : one_line(path, true), 1});
    }
  }

  void print() const {
    print(errors_, "more error");
    print(others_, "more message");
  }

 private:
  struct Kept {
    Console::Message message;
    std::string path;  // empty: the message has it
    std::size_t recordings;
  };
  struct Group {
    std::vector<Kept> kept = {};
    std::map<std::string, std::size_t> numbers = {};
  };

  /// The text without the recording's path and numbers.
  static std::string kind_of(std::string text, const std::string& path) {
    if (const std::size_t at = text.find(path); at != std::string::npos)
      text.erase(at, path.size());
    std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    return text;
  }

  void print(const Group& group, std::string_view others) const {
    constexpr std::size_t kShown = 10;
    const std::size_t size = group.kept.size();
    const std::size_t shown = console_.verbose() ? size : std::min(kShown, size);
    for (std::size_t i = 0; i < shown; ++i) {
      const Kept& kept = group.kept[i];
      std::string text =
          kept.path.empty() ? kept.message.text : kept.path + ": " + kept.message.text;
      if (kept.recordings > 1) {
        text += " (and of " + counted(kept.recordings - 1, "more recording") + ")";
      }
      console_.print({kept.message.kind, std::move(text)});
    }
    if (size > shown) {
      console_.note(counted(size - shown, others) + " about the recordings (--verbose prints all)");
    }
  }

  const Console& console_;
  Group errors_, others_;
};

/// Whether the path is named like a map or a dump.
bool is_named_as_names(const std::string& path) {
  return path.ends_with(".map") || path.ends_with(".dump") || is_dump_path(path);
}

/// Whether one of the first lines is of a perf map.
bool has_map_line(std::string_view text) {
  constexpr int kLines = 16;
  Diagnostics ignored(1);
  for (int i = 0; i < kLines && !text.empty(); ++i) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (parse_map_line(line, {0, 1, 1}, ignored)) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

/// Whether a word after RECORDING is a source of names: a map, a jitdump, a process. What is
/// neither that nor a recording counts as a recording, which then is reported as a damaged one.
bool is_of_names(const std::string& text) {
  if (refuse_recording(text, "")) return false;
  if (text == "-" || Snapshot::is_at(text)) return true;
  if (pid_of_source({text, Source::As::any}) != 0) return true;
  OpenPolicy policy;
  policy.regular_only = true;  // a FIFO can be read only once
  policy.keep_descriptor = false;
  const Result<Input> input = Input::open(text, policy);
  const Result<Input> inner = input ? expanded(*input) : failure(input);
  if (!inner || inner->text().empty()) return is_named_as_names(text);
  const SourceKind kind = detect_kind(inner->text());
  if (kind == SourceKind::perf_data || may_be_pprof(inner->text())) return false;
  const bool is_map = kind == SourceKind::perf_map && has_map_line(inner->text());
  return is_map || kind == SourceKind::jitdump || kind == SourceKind::json ||
         kind == SourceKind::pypylog || is_named_as_names(text);
}

}  // namespace

bool take_recording(const std::string& text, MergingOptions& options) {
  if (is_of_names(text)) return false;
  options.further.push_back(text);
  return true;
}

void add_recordings(CommandOptions& command, MergingOptions& options) {
  const Option list = command.values(
      "--recordings", options.lists, kFile,
      "Also read the recordings and profiles that this file, or '-', lists: a path in each line, "
      "which labels (KEY=VALUE) may follow, each after a tab");
  command
      .flag("--null", options.ends_with_nul,
            "The paths of --recordings end with a NUL byte, as those of find -print0")
      .needs(list);
}

void add_label(CommandOptions& command, MergingOptions& options) {
  command
      .values("--label", options.labels, "KEY[=VALUE]",
              "Merge stacks, and give them this label (jsonl, otlp, otlp-json, pprof); without a "
              "value, what the recording says: host, build (build ID of the program), time, arch "
              "or kernel")
      .check(check_label);
}

bool is_recorded_label(std::string_view key) {
  const auto keys = recorded_label_keys();
  return std::ranges::find(keys, key) != keys.end();
}

std::string recorded_label_names() {
  std::string names;
  for (const std::string_view key : recorded_label_keys()) {
    names.append(names.empty() ? "" : ", ").append(key);
  }
  return names;
}

bool is_merged(const MergingOptions& options) {
  return !options.further.empty() || !options.lists.empty() || !options.labels.empty();
}

Result<void> check_merging(const RecordedStacksOptions& options, const MergingOptions& merging) {
  if (options.recording.empty() && merging.lists.empty()) {
    return invalid("expected a RECORDING, such as perf.data");
  }
  const bool has_several = !merging.further.empty() || !merging.lists.empty();
  if (has_several && !options.sources.empty()) {
    const std::string& source = options.sources.front().text;
    return invalid("several recordings do not support another source of names, such as " +
                   one_line(source, true) +
                   ": their processes differ (--map-dir DIR reads the maps of each process)");
  }
  return check_recorded_options(options);
}

ExitCode merge_recordings(const ProfileRequest& request, const MergingOptions& merging,
                          MergedStacks& merged, const Console& console) {
  Result<std::vector<ListedRecording>> recordings =
      list_recordings(request.options.recording, merging, request.output, console);
  if (!recordings) return console.fail(recordings.error());
  const std::size_t count = recordings->size();
  Result<ModuleCacheOptions> caching = module_cache_options(request.options, console);
  if (!caching) return console.fail(caching.error());
  ModuleCache modules(*std::move(caching));
  RecordedStacksOptions options = request.options;
  options.modules = &modules;
  const std::size_t threads = std::min<std::size_t>(options.stacks.threads, count);
  options.stacks.threads = static_cast<unsigned>(options.stacks.threads / threads);
  const ProfileRequest of_each{options, request.names, request.counting, request.output};

  const Step step(console, "reading " + counted(count, "recording"));
  std::vector<ReadRecording> read(count);
  Messages messages(console);
  std::size_t failed = 0;
  const auto read_it = [&](std::size_t i) {
    return read_one((*recordings)[i], of_each, merging, read[i], console);
  };
  const auto done = [&](std::size_t i) {
    failed += read[i].status == ExitCode::ok ? 0 : 1;
    messages.add((*recordings)[i].path, std::exchange(read[i], {}));
    console.progress().done(i + 1, count);
  };
  merge_in_order(count, threads, read_it, done, merged);
  messages.print();
  if (failed != 0 && count > 1) {
    console.note(std::to_string(failed) + " of " + counted(count, "recording") +
                 " could not be read");
  }
  return failed == 0 ? ExitCode::ok : ExitCode::failed;
}

}  // namespace perfmap::app
