// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "perfmap/profile/stack_writer.hpp"
#include "stacks/interning.hpp"

namespace perfmap {

/// The name, or "[libc.so.6]" if only the module is known, or "[unknown]".
std::string shown_name(const FrameFunction& function);

/// The part after the last '/'.

/// Whether a process has that name right after exec of that file: the kernel keeps 15 bytes.
bool is_named_after(std::string_view comm, std::string_view path) noexcept;

/// A string of JSON inside a page, in the form of append_visible(): it does not end the enclosing
/// element.
std::string page_string(std::string_view bytes);

/// Control bytes and invalid UTF-8 as \xNN, so that a name is one word on one line.
std::string escaped(std::string_view name);

/// The name of a thread in a list: "comm PID/TID", or "comm PID" for the main thread; "comm" if the
/// pid is negative (unknown).
std::string thread_label(std::string_view comm, pid_t pid, pid_t tid);

/// Maps places to the frames shown: by function, optionally with all tiers of a function merged,
/// and optionally by line. Numbers count from 0. Borrows the table.
class ShownFrames {
 public:
  ShownFrames(const FrameTable& table, bool merge_tiers, bool lines)
      : table_(table), merge_tiers_(merge_tiers), lines_(lines) {}

  std::uint32_t of_place(std::uint32_t place);
  const FrameFunction& function(std::uint32_t number) const noexcept {
    return (merge_tiers_ ? merged_ : table_).function(frames_[number].function);
  }
  std::uint32_t line(std::uint32_t number) const noexcept { return frames_[number].line; }
  /// Of the line.
  std::string_view file(std::uint32_t number) const noexcept {
    return frames_[number].is_inlined ? kInlinedFromAnotherFile : function(number).file;
  }
  std::size_t size() const noexcept { return frames_.size(); }

 private:
  struct Frame {
    std::uint32_t function;
    std::uint32_t line;
    bool is_inlined;  ///< see FramePlace::inlined_line
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Frame& frame) const noexcept {
      return Hash().add(std::uint64_t{frame.function} << 32 | frame.line).value();
    }
  };

  std::uint32_t merged_function(std::uint32_t number);

  const FrameTable& table_;
  const bool merge_tiers_;
  const bool lines_;
  FrameTable merged_;
  std::vector<std::uint32_t> merged_numbers_;  // per function in table_, plus one; 0: not yet
  std::vector<std::uint32_t> of_places_;       // plus one; 0: not yet
  InternTable<Frame, HashOf> frames_;
};

/// A node of a tree of stacks; the root is where stacks begin.
struct StackNode {
  std::uint32_t parent = 0;
  std::uint32_t frame = 0;  ///< a number defined by the owner of the tree

  friend bool operator==(const StackNode&, const StackNode&) = default;
};

/// A prefix tree of stacks. Node 0 is the root; a parent's index is below those of its children.
class StackTree {
 public:
  StackTree() { nodes_.add({UINT32_MAX, UINT32_MAX}); }

  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    return nodes_.add({parent, frame});
  }
  const StackNode& operator[](std::uint32_t node) const noexcept { return nodes_[node]; }
  std::size_t size() const noexcept { return nodes_.size(); }

 private:
  struct HashOf {
    std::size_t operator()(const StackNode& node) const noexcept {
      return Hash().add(std::uint64_t{node.parent} << 32 | node.frame).value();
    }
  };
  InternTable<StackNode, HashOf> nodes_;
};

/// Interns lists of labels. Number 0 is the empty list.
class LabelSets {
 public:
  LabelSets() { sets_.add({}); }

  std::uint32_t add(std::span<const StackLabel> labels) {
    if (labels.empty()) return 0;
    Strings set;
    for (const StackLabel& label : labels) {
      set.push_back(strings_.add(label.key));
      set.push_back(strings_.add(label.value));
    }
    return sets_.add(set);
  }
  std::vector<StackLabel> operator[](std::uint32_t number) const {
    const Strings& set = sets_[number];
    std::vector<StackLabel> labels;
    for (std::size_t i = 0; i < set.size(); i += 2) {
      labels.push_back({strings_[set[i]], strings_[set[i + 1]]});
    }
    return labels;
  }
  std::size_t size() const noexcept { return sets_.size(); }

 private:
  using Strings = std::vector<std::uint32_t>;  // a key, its value, a key, …
  struct HashOf {
    std::size_t operator()(const Strings& set) const noexcept {
      Hash hash;
      for (const std::uint32_t string : set) hash.add(string);
      return hash.value();
    }
  };

  StringPool strings_;
  InternTable<Strings, HashOf> sets_;
};

/// The samples of a thread and an event, as columns of 16 bytes a sample.
struct ThreadProfile {
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t event = 0;
  std::string comm;  ///< the last name
  std::string process_comm;
  std::vector<std::uint32_t> stacks;
  std::vector<std::uint64_t> times;  ///< since the first sample of the profile
  /// Periods, saturated at the maximum.
  std::vector<std::uint32_t> periods;
};

/// Sorted by pid, tid and event.
class ThreadProfiles {
 public:
  using Key = std::tuple<pid_t, pid_t, std::uint32_t>;

  /// The profile that a sample belongs to.
  ThreadProfile& of(const StackSample& sample) {
    ThreadProfile& profile = profiles_[{sample.pid, sample.tid, sample.event}];
    profile.pid = sample.pid;
    profile.tid = sample.tid;
    profile.event = sample.event;
    if (profile.comm != sample.comm) profile.comm = sample.comm;
    if (profile.process_comm != sample.process_comm) profile.process_comm = sample.process_comm;
    return profile;
  }
  auto begin() const { return profiles_.begin(); }
  auto end() const { return profiles_.end(); }

 private:
  std::map<Key, ThreadProfile> profiles_;
};

/// A recording that the profile is compared with. Samples of event 0 are those of the baseline, and
/// those of event 1 are of the profile.
struct ComparedBaseline {
  std::string title;
  double scale = 1;  ///< samples of the baseline, times this, compare with the profile's
  /// See ChangeRule.
  std::string_view values;
  double unit = 1;
  double deviations = 0;
  double run_to_run = 0;
  std::uint64_t threshold_ppm = 0;
  std::uint64_t samples = 0;
  std::uint64_t new_samples = 0;
  std::optional<std::int64_t> total_change_ppm = {};  ///< as in Normalization
};

/// What every writer borrows or stores.
struct WriterInput {
  OutputFile& out;
  const FrameTable& table;
  StackProfile profile;
  StackWriter::Options options;
  std::optional<ComparedBaseline> baseline = {};  ///< for folded and html
  /// html: makes the JSON value of the page's member "code" when all samples were added.
  std::function<std::string()> code = {};
};

std::unique_ptr<StackWriter> make_folded_writer(WriterInput input);
std::unique_ptr<StackWriter> make_perf_script_writer(WriterInput input);
std::unique_ptr<StackWriter> make_speedscope_writer(WriterInput input);
std::unique_ptr<StackWriter> make_firefox_writer(WriterInput input);
std::unique_ptr<StackWriter> make_pprof_writer(WriterInput input);
std::unique_ptr<StackWriter> make_html_writer(WriterInput input);
std::unique_ptr<StackWriter> make_jsonl_writer(WriterInput input);
std::unique_ptr<StackWriter> make_chrome_writer(WriterInput input);
std::unique_ptr<StackWriter> make_otlp_writer(WriterInput input);
std::unique_ptr<StackWriter> make_otlp_json_writer(WriterInput input);

/// The event of a sample; one without a name if the profile does not list it.
const StackProfile::Event& event_of(const StackProfile& profile, const StackSample& sample);

}  // namespace perfmap
