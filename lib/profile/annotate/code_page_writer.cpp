// SPDX-License-Identifier: MIT
#include <deque>
#include <utility>

#include "annotate/heat.hpp"
#include "annotate/listed_text.hpp"
#include "perfmap/profile/annotate.hpp"
#include "perfmap/text.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMaxLine = 400;  // bytes of source text
constexpr std::size_t kNear = 12;      // instructions before and after one with samples

/// The JSON of one version, for the page's script. It is given up when it exceeds `max_bytes`.
///
/// Rows of lines are [line, self, total, text], those of instructions [offset, self, total, text].
/// A row [text] is a file, or the source line of the instructions below it; [] stands for rows that
/// are left out.
class ListingText {
 public:
  ListingText(const CodeVersion& version, const Disassembler* disassembler, SourceText& source,
              std::size_t max_bytes)
      : version_(version), disassembler_(disassembler), source_(source), max_bytes_(max_bytes) {}

  /// Empty if it was given up.
  std::string make() {
    text_ = "{\"name\":" + page_string(version_.name) +
            ",\"module\":" + page_string(version_.module) + ",\"about\":" + page_string(about()) +
            ",\"self\":" + std::to_string(version_.self) +
            ",\"total\":" + std::to_string(version_.total) + ",\"lines\":[";
    add_lines();
    text_ += "],\"rows\":[";
    is_first_ = true;
    add_code();
    text_ += "]}";
    return is_full() ? "" : std::move(text_);
  }

 private:
  bool is_full() const noexcept { return text_.size() > max_bytes_; }

  std::string about() const {
    std::string text = version_.tier.empty() ? "" : version_.tier + ", ";
    text += "0x" + to_hex(version_.range.begin) + ", " + counted(version_.range.size, "byte");
    if (version_.since) text += ", from " + seconds_text(*version_.since) + " s";
    if (version_.until) text += " until " + seconds_text(*version_.until) + " s";
    return text;
  }

  void add_row(const std::string& cells) {
    if (is_full()) return;
    text_.append(std::exchange(is_first_, false) ? "[" : ",[").append(cells).append("]");
  }
  void add_row(std::uint64_t position, std::uint64_t self, std::uint64_t total,
               const std::string& text) {
    add_row(std::to_string(position) + "," + std::to_string(self) + "," + std::to_string(total) +
            "," + page_string(text));
  }

  std::string line_text(std::uint32_t file, std::uint32_t line) {
    return cut_line(source_.line_without_tabs(version_.files[file], line).value_or(""), kMaxLine);
  }

  void add_lines() {
    std::optional<std::uint32_t> file;
    for (const LineSamples& line : list_lines(version_, source_)) {
      if (std::exchange(file, line.file) != line.file) {
        add_row(page_string(title_of(version_.files[line.file], source_)));
      }
      add_row(line.line, line.self, line.total, line_text(line.file, line.line));
    }
  }

  /// Of long code, the instructions near samples are what one looks for.
  void add_code() {
    struct Idle {
      std::uint64_t offset;
      std::string text;
      const SourcePlace* place;
    };
    std::deque<Idle> before;  // not yet written
    std::size_t after = 0;    // how many are still to be written
    bool has_gap = false;
    list_code(version_, disassembler_, [&](const ListingRow& row) {
      if (is_full()) return;
      const std::string text = row.text.empty() ? "–" : std::string(row.text);
      const bool is_idle = row.self == 0 && row.total == 0;
      if (is_idle && after == 0) {
        before.push_back({row.offset, text, row.place});
        if (before.size() > kNear) {
          before.pop_front();
          has_gap = true;
        }
        return;
      }
      if (!before.empty() && std::exchange(has_gap, false)) add_row("");
      for (const Idle& idle : before) add_instruction(idle.offset, 0, 0, idle.text, idle.place);
      before.clear();
      add_instruction(row.offset, row.self, row.total, text, row.place);
      after = is_idle ? after - 1 : kNear;
    });
    if (!before.empty()) add_row("");
  }

  void add_instruction(std::uint64_t offset, std::uint64_t self, std::uint64_t total,
                       const std::string& text, const SourcePlace* place) {
    if (place != nullptr && std::pair(place->file, place->line) != last_) {
      last_ = {place->file, place->line};
      const std::string& file = version_.files[place->file];
      const std::string name(base_name(file));
      add_row(page_string(name + ":" + std::to_string(place->line) + "  " +
                          line_text(place->file, place->line)));
    }
    add_row(offset, self, total, text);
  }

  const CodeVersion& version_;
  const Disassembler* disassembler_;
  SourceText& source_;
  std::size_t max_bytes_;
  std::string text_;
  bool is_first_ = true;
  std::pair<std::uint32_t, std::uint32_t> last_ = {};  // file and line; no line is 0
};

class CodePageWriter : public StackWriter {
 public:
  CodePageWriter(OutputFile& out, const FrameTable& table, StackProfile profile, Options writing,
                 FunctionSamples& samples, const Recording& recording, SourceText& source,
                 PageCodeOptions options)
      : table_(table),
        samples_(samples),
        recording_(recording),
        source_(source),
        options_(options),
        page_(make_html_writer({.out = out,
                                .table = table,
                                .profile = std::move(profile),
                                .options = writing,
                                .code = [this] { return code(); }})) {}

  void add(const StackSample& sample) override {
    samples_.add(sample, table_);
    page_->add(sample);
  }
  Result<void> finish() override { return page_->finish(); }

 private:
  /// Functions of maps and the kernel have no code, so more versions are examined than written.
  /// Each may need a pass over its dump.
  static constexpr std::size_t kMaxExamined = 300;

  std::string code() {
    std::string listings;
    std::string no_text;
    std::size_t tried = 0;
    bool is_complete = true;
    std::size_t examined = 0;
    std::size_t left = options_.max_bytes;
    for (const MatchedFunction& function : samples_.matches(table_)) {
      if (function.self == 0) break;
      for (const std::uint32_t number : function.versions) {
        if (tried == options_.max_versions || ++examined > kMaxExamined) {
          is_complete = false;
          continue;
        }
        const CodeVersion version = samples_.version(number, table_, recording_, true);
        if (version.self == 0 || version.code.empty()) continue;
        ++tried;
        const Result<Disassembler> opened = Disassembler::open(version.machine);
        if (!opened) no_text = opened.error().message();
        const std::string text =
            ListingText(version, opened ? &*opened : nullptr, source_, left).make();
        if (text.empty()) {
          is_complete = false;
          continue;
        }
        source_.check_times(version, recording_.input().facts().mtime_ns);
        left -= text.size();
        listings.append(listings.empty() ? "" : ",").append(text);
      }
    }
    if (options_.no_text != nullptr && !no_text.empty()) *options_.no_text = no_text;
    std::string heat;
    for (const std::uint64_t share : kHeat) {
      heat.append(heat.empty() ? "" : ",").append(std::to_string(share));
    }
    return std::string("{\"heat\":[") + heat +
           "],\"is_complete\":" + (is_complete ? "true" : "false") +
           ",\"no_text\":" + page_string(no_text) + ",\"listings\":[" + listings + "]}";
  }

  const FrameTable& table_;
  FunctionSamples& samples_;
  const Recording& recording_;
  SourceText& source_;
  PageCodeOptions options_;
  std::unique_ptr<StackWriter> page_;
};

}  // namespace

std::unique_ptr<StackWriter> make_code_page_writer(OutputFile& out, const FrameTable& table,
                                                   StackProfile profile,
                                                   StackWriter::Options writing,
                                                   FunctionSamples& samples,
                                                   const Recording& recording, SourceText& source,
                                                   PageCodeOptions options) {
  return std::make_unique<CodePageWriter>(out, table, std::move(profile), writing, samples,
                                          recording, source, options);
}

}  // namespace perfmap
