#include "resolve_answers.hpp"

#include <algorithm>
#include <perfmap/demangle.hpp>

namespace perfmap::app {

void Answers::answer_all() {
  if (queries_.empty()) return;
  const std::size_t count = queries_.size();
  if (sources_.files) {
    resolutions_.resize(count);
    sources_.files->find_all(queries_, resolutions_);
  }
  names_.resize(sources_.processes.size());
  for (std::size_t p = 0; p < names_.size(); ++p) {
    names_[p].resize(count);
    sources_.processes[p].names->find_all(queries_, names_[p]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (names_.empty()) {
      writer_.write(by_files(queries_[i], resolutions_[i]));
      continue;
    }
    const std::size_t p = best_process(i);
    const bool files =
        sources_.files && files_win(resolutions_[i], names_[p][i], sources_.processes[p].rank);
    writer_.write(files ? by_files(queries_[i], resolutions_[i])
                        : by_process(names_[p][i], *sources_.processes[p].names));
  }
  queries_.clear();
}

std::size_t Answers::best_process(std::size_t i) const {
  for (std::size_t p = names_.size(); p-- > 0;) {
    if (names_[p][i].has_name()) return p;
  }
  return names_.size() - 1;
}

bool Answers::files_win(const Resolution& by_files, const AddressName& by_process,
                        std::size_t process_rank) const {
  if (!by_files.found || by_process.module != nullptr) return false;
  if (!by_process.entry) return true;
  const bool file_is_dump = by_files.found->source >= sources_.files->maps().size();
  const bool process_has_dump =
      by_process.entry->source >= by_process.sources->resolver().maps().size();
  if (file_is_dump != process_has_dump) return file_is_dump;
  return sources_.files_rank > process_rank;
}

Answer Answers::by_files(const Query& query, const Resolution& resolution) {
  Answer answer;
  answer.address = query.address;
  answer.why = to_string(resolution.why);
  answer.with_inlined = options_.inlines;
  if (resolution.found) add_entry(*resolution.found, *sources_.files, answer);
  return answer;
}

void Answers::add_entry(const ResolvedName& name, Resolver& resolver, Answer& answer) const {
  const auto maps = resolver.maps();
  answer.name = name.name;
  if (options_.demangle) answer.demangled = demangle_code(name.name);
  answer.range = name.range;
  answer.source = resolver.input(name.source).name();
  answer.map = name.source < maps.size() ? &maps[name.source] : nullptr;
  answer.offset = name.offset;
  answer.doubts = name.doubts;
  if (!options_.lines) return;
  const CodeLine* const line = line_at(resolver.lines(name), name.address_at_load);
  if (line == nullptr) return;
  answer.place = {line->file, static_cast<std::uint64_t>(std::max(line->line, 0))};
}

Answer Answers::by_process(const AddressName& name, ProcessNames& process) {
  Answer answer;
  answer.address = name.address;
  answer.why = to_string(name.why);
  answer.with_inlined = options_.inlines;
  if (name.entry) {
    Resolver& resolver = name.sources->resolver();
    add_entry(*name.entry, resolver, answer);
    answer.source = process.shown(resolver.input(name.entry->source).name());
    answer.doubts.add(name.doubts);
    return answer;
  }
  if (name.mapped != nullptr) answer.source = name.mapped->name;
  if (!name.name.empty()) {
    answer.name = name.name;
    answer.range = name.range;
    answer.doubts = name.doubts;
  }
  add_frames(name, answer);
  return answer;
}

void Answers::add_frames(const AddressName& name, Answer& answer) const {
  if (name.frames.empty()) return;
  if (options_.inlines) answer.inlined = std::span(name.frames).first(name.frames.size() - 1);
  const SourceFrame& own = options_.inlines ? name.frames.back() : name.frames.front();
  if (options_.lines && !own.file.empty()) answer.place = {own.file, own.line};
}

}  // namespace perfmap::app
