#include "perfmap/pprof_names.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfmap/demangle.hpp"
#include "stacks/gzip_stream.hpp"
#include "stacks/pprof_reader.hpp"
#include "stacks/pprof_tables.hpp"
#include "stacks/writers.hpp"
#include "unwind/calls.hpp"

namespace perfmap {

namespace {

/// A location in the samples of a process.
struct PprofUse {
  std::uint64_t location = 0;  ///< position in PprofProfile::locations()
  pid_t pid = 0;
  bool was_leaf = false;
  std::uint64_t function = 0;  ///< id of the function that it has now; 0: as it was
  std::uint64_t id = 0;        ///< of the location that the process's samples have
};

/// Which locations get which names.
class PprofUses {
 public:
  PprofUses(const PprofProfile& profile, PprofNamed& report) : profile_(profile), report_(report) {}

  /// The locations of JIT code without a function, for each process whose samples have them.
  void find_uses();

  void find_names(const PprofNaming& naming);

  /// The first process's answer stays where it was; others that differ move.
  void settle();

  /// nullptr: no process has other code there than before.
  const PprofUse* own_use(std::size_t location) const {
    return own_[location] == 0 ? nullptr : &uses_[own_[location] - 1];
  }
  /// Uses that are to have a location of their own, which is to be added: by the location's
  /// position.
  std::vector<const PprofUse*> copies() const {
    std::vector<const PprofUse*> copies;
    for (const std::size_t use : first_of_copies_) copies.push_back(&uses_[use]);
    return copies;
  }
  bool has_copies() const noexcept { return copies_ != 0; }
  const PprofUse* use_of(std::uint64_t location_id, pid_t pid) const {
    const auto process = numbers_.find(pid);
    if (process == numbers_.end()) return nullptr;
    const auto use = process->second.find(profile_.find(location_id));
    return use == process->second.end() ? nullptr : &uses_[use->second];
  }
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::optional<std::string_view> name_of(const JitSources& sources, const PprofUse& use) const;

  void count();

  const PprofProfile& profile_;
  PprofNamed& report_;
  std::vector<PprofUse> uses_;
  std::unordered_map<pid_t, std::unordered_map<std::uint64_t, std::size_t>> numbers_;  // of uses_
  std::vector<std::string> names_;  // of new functions, in the order of their ids
  std::vector<std::size_t> own_;    // by location: one more than the first use
  std::vector<std::size_t> first_of_copies_;
  std::uint64_t copies_ = 0;
};

void PprofUses::find_uses() {
  std::vector<bool> seen(profile_.locations().size());
  for (const PprofProfile::Sample& sample : profile_.samples()) {
    for (std::size_t at = sample.locations.begin; at < sample.locations.end; ++at) {
      const std::size_t location = profile_.find(profile_.location_id(at));
      if (location == profile_.locations().size()) continue;
      if (!seen[location]) ++report_.locations;
      if (!seen[location] && profile_.locations()[location].is_unnamed_jit) ++report_.jit;
      seen[location] = true;
      if (!profile_.locations()[location].is_unnamed_jit) continue;
      const auto [use, is_new] = numbers_[sample.pid].try_emplace(location, uses_.size());
      if (is_new) uses_.push_back({location, sample.pid, false, 0, 0});
      if (at == sample.locations.begin) uses_[use->second].was_leaf = true;
    }
  }
}

void PprofUses::find_names(const PprofNaming& naming) {
  std::map<pid_t, std::shared_ptr<JitSources>> sources;
  std::unordered_map<std::string, std::uint64_t> functions;
  for (PprofUse& use : uses_) {
    const auto [found, is_new] = sources.try_emplace(use.pid);
    if (is_new && naming.find) found->second = naming.find(use.pid);
    if (found->second == nullptr && use.pid == 0) ++report_.without_process;
    if (found->second == nullptr) continue;
    const auto name = name_of(*found->second, use);
    if (!name) continue;
    const auto [function, is_first] =
        functions.try_emplace(escaped(*name), profile_.last_function() + functions.size() + 1);
    if (is_first) names_.push_back(function->first);
    use.function = function->second;
  }
}

void PprofUses::settle() {
  own_.resize(profile_.locations().size());
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> moved;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    PprofUse& use = uses_[i];
    const PprofProfile::Location& location = profile_.locations()[use.location];
    if (own_[use.location] == 0) own_[use.location] = i + 1;
    const PprofUse& own = uses_[own_[use.location] - 1];
    use.id = location.id;
    if (use.function == own.function) continue;
    const auto [other, is_new] =
        moved.try_emplace({use.location, use.function}, profile_.last_location() + copies_ + 1);
    if (is_new) ++copies_;
    if (is_new) first_of_copies_.push_back(i);
    use.id = other->second;
  }
  count();
}

std::optional<std::string_view> PprofUses::name_of(const JitSources& sources,
                                                   const PprofUse& use) const {
  const Address address = profile_.locations()[use.location].address;
  const auto exact = sources.find({address, Timeline::kEnd}).found;
  const bool may_be_before = !use.was_leaf && (!exact || exact->range.begin == address);
  if (may_be_before && return_site_in(sources, address).is_return) {
    const auto before = sources.find({address - 1, Timeline::kEnd}).found;
    if (before) return before->name;
  }
  return exact ? std::optional(exact->name) : std::nullopt;
}

void PprofUses::count() {
  report_.ambiguous = copies_;
  std::vector<bool> named(profile_.locations().size());
  for (const PprofUse& use : uses_) {
    if (use.function != 0 && !named[use.location]) ++report_.named;
    if (use.function != 0) named[use.location] = true;
  }
}

Error not_a_profile() { return {Errc::bad_format, "it is no pprof profile", 0, {}}; }

/// Writes the profile anew: each field as it was, or what it is now.
class Rewriting {
 public:
  Rewriting(const PprofProfile& profile, const PprofUses& uses, bool is_compressed, OutputFile& out)
      : profile_(profile), uses_(uses), out_(out) {
    if (is_compressed) gzip_.emplace(out);
  }

  void write(std::string_view bytes, bool demangle) {
    const std::vector<const PprofUse*> copies = uses_.copies();
    std::unordered_map<std::uint64_t, std::vector<const PprofUse*>> by_location;
    for (const PprofUse* copy : copies) by_location[copy->location].push_back(copy);
    std::size_t location = 0;
    std::size_t sample = 0;
    for (ProtoReader reader(bytes); reader.next();) {
      if (reader.is_bytes() && reader.field() == pprof::location) {
        write_locations(reader, location, by_location);
        ++location;
      } else if (reader.is_bytes() && reader.field() == pprof::sample) {
        write_sample(reader, profile_.samples()[sample++]);
      } else {
        emit(reader.whole());
      }
    }
    add_functions(demangle);
    if (gzip_) gzip_->finish();
  }

 private:
  void emit(std::string_view bytes) {
    if (gzip_) {
      gzip_->write(bytes);
    } else {
      out_.write(bytes);
    }
  }
  void emit_message(std::uint32_t field, std::string_view message) {
    framed_.clear();
    protozero::pbf_writer(framed_).add_message(field, message.data(), message.size());
    emit(framed_);
  }

  void write_locations(
      const ProtoReader& field, std::size_t location,
      const std::unordered_map<std::uint64_t, std::vector<const PprofUse*>>& copies) {
    const PprofUse* const own = uses_.own_use(location);
    if (own == nullptr || own->function == 0) {
      emit(field.whole());
    } else {
      write_location(field.bytes(), *own);
    }
    const auto more = copies.find(location);
    if (more == copies.end()) return;
    for (const PprofUse* use : more->second) write_location(field.bytes(), *use);
  }

  /// The location, called otherwise, or another one of its kind.
  void write_location(std::string_view bytes, const PprofUse& use) {
    enum : std::uint32_t { id = 1, line = 4 };
    message_.clear();
    protozero::pbf_writer(message_).add_uint64(id, use.id);
    for (ProtoReader reader(bytes); reader.next();) {
      const bool is_name = reader.field() == line && use.function != 0;
      if (reader.field() != id && !is_name) message_ += reader.whole();
    }
    if (use.function != 0) {
      protozero::pbf_writer writer(message_);
      protozero::pbf_writer(writer, line).add_uint64(1, use.function);
    }
    emit_message(pprof::location, message_);
  }

  void write_sample(const ProtoReader& field, const PprofProfile::Sample& sample) {
    bool is_changed = false;
    std::vector<std::uint64_t> ids;
    if (uses_.has_copies()) {
      for (std::size_t at = sample.locations.begin; at < sample.locations.end; ++at) {
        const std::uint64_t id = profile_.location_id(at);
        const PprofUse* const use = uses_.use_of(id, sample.pid);
        ids.push_back(use == nullptr ? id : use->id);
        is_changed = is_changed || ids.back() != id;
      }
    }
    if (!is_changed) return emit(field.whole());
    enum : std::uint32_t { location_id = 1 };
    message_.clear();
    protozero::pbf_writer(message_).add_packed_uint64(location_id, ids.begin(), ids.end());
    for (ProtoReader reader(field.bytes()); reader.next();) {
      if (reader.field() != location_id) message_ += reader.whole();
    }
    emit_message(pprof::sample, message_);
  }

  void add_functions(bool demangle) {
    enum : std::uint32_t { id = 1, name = 2, system_name = 3 };
    const std::vector<std::string>& names = uses_.names();
    std::vector<std::string> demangled;  // their strings come after all names
    for (std::size_t i = 0; i < names.size(); ++i) {
      message_.clear();
      protozero::pbf_writer writer(message_);
      writer.add_uint64(id, profile_.last_function() + i + 1);
      const auto text = demangle ? demangle_code(names[i]) : std::nullopt;
      const std::size_t shown = text ? names.size() + demangled.size() : i;
      if (text) demangled.push_back(*text);
      writer.add_int64(name, static_cast<std::int64_t>(profile_.strings() + shown));
      writer.add_int64(system_name, static_cast<std::int64_t>(profile_.strings() + i));
      emit_message(pprof::function, message_);
    }
    for (const std::string& text : names) emit_message(pprof::string_table, text);
    for (const std::string& text : demangled) emit_message(pprof::string_table, text);
  }

  const PprofProfile& profile_;
  const PprofUses& uses_;
  OutputFile& out_;
  std::optional<GzipStream> gzip_;
  std::string message_;
  std::string framed_;
};

}  // namespace

bool may_be_pprof(std::string_view bytes) noexcept {
  if (is_gzip(bytes)) return true;
  bool has_strings = false;
  ProtoReader reader(bytes);
  while (reader.next()) {
    if (reader.field() != pprof::string_table || has_strings) continue;
    if (!reader.is_bytes() || !reader.bytes().empty()) return false;
    has_strings = true;
  }
  return reader.ok() && has_strings;
}

Result<PprofNamed> name_pprof(std::string_view bytes, const PprofNaming& naming, OutputFile& out) {
  const bool is_compressed = is_gzip(bytes);
  std::string expanded;
  if (is_compressed) {
    constexpr std::uint64_t kSmall = std::uint64_t{64} << 20;
    const std::uint64_t most = std::max(kSmall, bytes.size() * naming.most_times);
    Result<std::string> text = gunzip(bytes, std::min(most, naming.most_bytes));
    if (!text) return Failure(std::move(text.error()));
    expanded = *std::move(text);
    bytes = expanded;
  }
  // Ids of what is added count on from the last.
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 62;
  PprofProfile profile;
  if (!profile.read(bytes) || profile.last_location() > kHighest ||
      profile.last_function() > kHighest) {
    return Failure(not_a_profile());
  }
  PprofNamed report;
  PprofUses names(profile, report);
  names.find_uses();
  names.find_names(naming);
  names.settle();
  Rewriting(profile, names, is_compressed, out).write(bytes, naming.demangle);
  return report;
}

}  // namespace perfmap
