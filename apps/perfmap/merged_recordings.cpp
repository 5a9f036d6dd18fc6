// SPDX-License-Identifier: MIT
#include "merged_recordings.hpp"

#include <algorithm>
#include <map>
#include <perfmap/input.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/snapshot.hpp>
#include <perfmap/profile/source.hpp>
#include <perfmap/text.hpp>
#include <set>
#include <utility>

#include "perfmap/text.hpp"
#include "recording.hpp"
#include "unpacked.hpp"

namespace perfmap::app {
namespace {

Failure invalid(const std::string& why) {
  return Failure(Error{Errc::invalid_argument, why, 0, {}});
}

bool has_value(std::string_view label) { return label.find('=') != std::string_view::npos; }

std::string check_label(const std::string& text) {
  if (has_value(text)) {
    const Result<RecordingLabel> label = parse_label(text);
    return label ? "" : label.error().message;
  }
  if (is_recorded_label(text)) return "";
  return "recordings have no '" + text + "', but " + recorded_label_names() +
         "; KEY=VALUE is any other label";
}

Result<std::vector<ListedRecording>> read_list(const MergingOptions& options) {
  OpenPolicy policy;
  policy.keep_descriptor = false;
  const std::string& path = options.list;
  const Result<Input> input =
      path == "-" ? Input::from_descriptor(0, "-", policy) : Input::open(path, policy);
  if (!input) return Failure(input.error());
  Result<std::vector<ListedRecording>> listed =
      parse_recording_list(input->text(), options.ends_with_nul);
  if (listed) return listed;
  const Error& why = listed.error();
  return invalid(path + ":" + std::to_string(why.where.line) + ": " + why.message);
}

/// All recordings in order. One path counts once.
Result<std::vector<ListedRecording>> list_recordings(const std::string& first,
                                                     const MergingOptions& options,
                                                     const Console& console) {
  std::vector<ListedRecording> all;
  if (!first.empty()) all.push_back({first});
  for (const std::string& path : options.further) all.push_back({path});
  if (!options.list.empty()) {
    Result<std::vector<ListedRecording>> listed = read_list(options);
    if (!listed) return listed;
    std::ranges::move(*listed, std::back_inserter(all));
  }
  std::set<std::string> paths;
  const auto is_again = [&](const ListedRecording& one) {
    if (paths.insert(one.path).second) return false;
    console.warn(one_line(one.path, true) + " is given twice, and counts once");
    return true;
  };
  all.erase(std::remove_if(all.begin(), all.end(), is_again), all.end());
  if (all.empty()) return invalid("the list " + options.list + " has no recordings");
  const bool is_twice = options.list == "-" && paths.contains("-");
  if (is_twice) return invalid("standard input can be a source only once");
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

/// Prints errors, and the first of the other messages, equal ones once.
class Messages {
 public:
  explicit Messages(const Console& console) : console_(console) {}

  void add(const std::string& path, const ReadRecording& read) {
    for (const Console::Message& message : read.messages) {
      if (message.kind == Console::Message::Kind::error) {
        const bool has_name = message.text.find(path) != std::string::npos;
        console_.fail(has_name ? message.text : one_line(path, true) + ": " + message.text);
      } else if (const auto [known, is_new] = numbers_.try_emplace(message.text, kept_.size());
                 is_new) {
        kept_.push_back({message, 1});
      } else {
        ++kept_[known->second].recordings;
      }
    }
  }

  void print() const {
    constexpr std::size_t kShown = 10;
    const std::size_t shown = console_.verbose() ? kept_.size() : std::min(kShown, kept_.size());
    for (std::size_t i = 0; i < shown; ++i) {
      Console::Message message = kept_[i].message;
      const std::size_t count = kept_[i].recordings;
      if (count > 1) message.text += " (" + counted(count, "recording") + ")";
      console_.print(message);
    }
    if (kept_.size() > shown) {
      console_.note(counted(kept_.size() - shown, "more message") +
                    " about the recordings (--verbose prints all)");
    }
  }

 private:
  struct Kept {
    Console::Message message;
    std::size_t recordings;
  };
  const Console& console_;
  std::vector<Kept> kept_;
  std::map<std::string, std::size_t> numbers_;
};

enum class Word : std::uint8_t {
  recording,
  names,    ///< of JIT code: a map, a jitdump, a process
  unclear,  ///< it cannot be read, or has nothing of either
};

Word word_of(const std::string& text) {
  if (refuse_recording(text, "")) return Word::recording;
  if (text == "-" || Snapshot::is_at(text)) return Word::names;
  if (pid_of_source({text, Source::As::any}) != 0) return Word::names;
  OpenPolicy policy;
  policy.regular_only = true;  // a FIFO can be read only once
  policy.keep_descriptor = false;
  const Result<Input> input = Input::open(text, policy);
  if (!input) return Word::unclear;
  const Result<Input> inner = expanded(*input);
  if (!inner || inner->text().empty()) return Word::unclear;
  const bool is_recorded =
      detect_kind(inner->text()) == SourceKind::perf_data || may_be_pprof(inner->text());
  if (is_recorded) return Word::recording;
  return is_binary(inner->text()) ? Word::unclear : Word::names;
}

}  // namespace

bool take_recording(const std::string& text, MergingOptions& options) {
  const Word word = word_of(text);
  if (word == Word::names) return false;
  options.further.push_back(text);
  if (word == Word::unclear) options.unclear.push_back(text);
  return true;
}

void settle_unclear(RecordedStacksOptions& options, MergingOptions& merging) {
  const bool has_several = merging.further.size() > merging.unclear.size() || !merging.list.empty();
  if (has_several) return;
  merging.further.clear();
  for (const std::string& text : merging.unclear) options.sources.push_back({text});
}

void add_recordings(CommandOptions& command, MergingOptions& options) {
  const Option list = command.value(
      "--recordings", options.list, kFile,
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
  return !options.further.empty() || !options.list.empty() || !options.labels.empty();
}

Result<void> check_merging(const RecordedStacksOptions& options, const MergingOptions& merging) {
  if (options.recording.empty() && merging.list.empty()) {
    return invalid("expected a RECORDING, such as perf.data");
  }
  const bool has_several = !merging.further.empty() || !merging.list.empty();
  if (has_several && !options.sources.empty()) {
    return invalid(
        "several recordings do not support other sources of names: their processes differ");
  }
  return check_recorded_options(options);
}

ExitCode merge_recordings(const ProfileRequest& request, const MergingOptions& merging,
                          MergedStacks& merged, const Console& console) {
  Result<std::vector<ListedRecording>> recordings =
      list_recordings(request.options.recording, merging, console);
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
