#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "answer_text.hpp"
#include "name_sources.hpp"
#include "process_names.hpp"

namespace perfmap::app {

/// What `resolve` asks: files, and living processes, each with its place among the sources.
struct AnswerSources {
  struct Process {
    std::size_t rank = 0;
    std::unique_ptr<ProcessNames> names;
  };

  std::optional<Resolver> files;
  std::size_t files_rank = 0;  ///< of the last one
  std::vector<Process> processes;
};

/// Answers in the order of the questions, by all sources together. What an ELF file has mapped, it
/// names; elsewhere a jitdump comes before a map, and of several sources the later one.
class Answers {
 public:
  struct Options {
    bool lines = false;
    bool inlines = false;
    bool demangle = true;
  };

  Answers(AnswerSources& sources, AnswerWriter& writer, Options options)
      : sources_(sources), writer_(writer), options_(options) {}

  void ask(const Query& query) {
    queries_.push_back(query);
    if (queries_.size() == kBatch) answer_all();
  }
  void answer_all();

 private:
  static constexpr std::size_t kBatch = 4096;

  /// The process that answers question `i`, or would; its place among the processes.
  std::size_t best_process(std::size_t i) const;
  bool files_win(const Resolution& by_files, const AddressName& by_process,
                 std::size_t process_rank) const;
  Answer by_files(const Query& query, const Resolution& resolution);
  Answer by_process(const AddressName& name, ProcessNames& process);
  void add_entry(const ResolvedName& name, Resolver& resolver, Answer& answer) const;
  void add_frames(const AddressName& name, Answer& answer) const;

  AnswerSources& sources_;
  AnswerWriter& writer_;
  Options options_;
  std::vector<Query> queries_;
  std::vector<Resolution> resolutions_;
  std::vector<std::vector<AddressName>> names_;  // by process
};

}  // namespace perfmap::app
