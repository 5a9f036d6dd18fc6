#include "perfmap/pprof_names.hpp"

#include <algorithm>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>

#include "perfmap/demangle.hpp"
#include "stacks/gunzip.hpp"
#include "stacks/gzip_stream.hpp"
#include "stacks/pprof_profile.hpp"
#include "stacks/pprof_tables.hpp"
#include "stacks/pprof_uses.hpp"
#include "stacks/proto_reader.hpp"

namespace perfmap {
namespace {

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
