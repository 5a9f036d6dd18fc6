#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "output/jitdump_json_records.hpp"
#include "output/json_position.hpp"
#include "output/json_source.hpp"
#include "perfmap/jitdump_json.hpp"

namespace perfmap {
namespace {

/// How much is looked at to tell what kind of map it is. Whoever sorts keys puts "source" last.
constexpr std::size_t kLookAt = std::size_t{64} << 10;

bool says_jitdump(std::string_view json) noexcept {
  constexpr std::string_view kBlanks = " \t\r\n";
  constexpr std::string_view kKey = "\"kind\"";
  for (std::size_t at = json.find(kKey); at != std::string_view::npos; at = json.find(kKey, at)) {
    at += kKey.size();
    std::string_view rest = json.substr(at);
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    if (!rest.starts_with(':')) continue;
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    if (rest.starts_with("\"jitdump\"")) return true;
  }
  return false;
}

/// Records in the order in which they come, and where each belongs.
class DumpBuilder {
 public:
  std::string problem;

  void header(const nlohmann::json& object) {
    JsonDumpHeader read = read_json_header(object);
    if (problem.empty()) problem = std::move(read.problem);
    header_ = read.header;
    extra_ = std::move(read.extra);
  }
  bool has_header() const noexcept { return header_.has_value(); }

  void record(const nlohmann::json& object) {
    if (!problem.empty()) return;
    const std::size_t begin = bytes_.size();
    JitdumpEncoder encoder(bytes_, header_->order);
    JsonRecord read = encode_json_record(object, encoder);
    problem = std::move(read.problem);
    without_code_ += read.without_code ? 1 : 0;
    if (without_code_ != 0 && bytes_.size() > DumpBytes::kMostBytes && problem.empty()) {
      problem = "a jitdump of more than 1 GiB, with zeros for code that is not there";
    }
    const auto offset = object.find("offset");
    if (offset != object.end() && offset->is_number_unsigned()) {
      last_offset_ = offset->get<std::uint64_t>();
    }
    places_.push_back({last_offset_, begin, bytes_.size() - begin});
  }

  DumpBytes dump() && {
    std::stable_sort(places_.begin(), places_.end(),
                     [](const Place& a, const Place& b) { return a.offset < b.offset; });
    DumpBytes dump{{}, without_code_};
    dump.bytes.reserve(JitdumpHeader::kSize + extra_.size() + bytes_.size());
    JitdumpEncoder(dump.bytes, header_->order).header(*header_, extra_);
    for (const Place& place : places_) dump.bytes.append(bytes_, place.begin, place.size);
    return dump;
  }

 private:
  struct Place {
    std::uint64_t offset;
    std::size_t begin;
    std::size_t size;
  };

  std::optional<JitdumpHeader> header_;
  std::string extra_;
  std::string bytes_;
  std::vector<Place> places_;
  std::uint64_t last_offset_ = 0;
  std::uint64_t without_code_ = 0;
};

/// Goes through one document and hands out each value that is asked for, of which nothing is kept:
/// the members of the object in `member`, or all objects of the arrays in `arrays`.
class DocumentWalk {
 public:
  explicit DocumentWalk(std::string_view json) : json_(json) {}

  /// False where this is not JSON; stopped_at() says where.
  bool headers(const std::function<void(const nlohmann::json&)>& take) {
    return walk([&](int depth, const nlohmann::json& value) {
      if (depth == 1 && key_ == "header") take(value);
    });
  }
  bool records(const std::function<void(const nlohmann::json&)>& take) {
    return walk([&](int depth, const nlohmann::json& value) {
      if (depth == 2 && (key_ == "entries" || key_ == "records")) take(value);
    });
  }
  std::size_t position() const noexcept { return taken_ == 0 ? 0 : taken_ - 1; }

 private:
  template <class Take>
  bool walk(Take take) {
    using Event = nlohmann::json::parse_event_t;
    taken_ = 0;
    key_.clear();
    const auto visit = [&](int depth, Event event, nlohmann::json& value) {
      if (event == Event::key && depth == 1) key_ = value.get<std::string>();
      if (event != Event::object_end) return true;
      take(depth, value);
      return depth == 0 || depth > 2;  // what is inside a record is kept until that ends
    };
    const nlohmann::json whole =
        nlohmann::json::parse(CountingIterator(json_.data(), &taken_),
                              CountingIterator(json_.data() + json_.size(), &taken_), visit, false);
    return !whole.is_discarded();
  }
  std::string_view json_;
  std::string key_;
  std::size_t taken_ = 0;
};

Failure failure(std::string why, std::string_view json, std::size_t offset) {
  return Failure({Errc::bad_format, std::move(why), 0, locate(json, offset)});
}

Result<DumpBytes> from_document(std::string_view json) {
  DumpBuilder builder;
  std::size_t wrong_at = 0;
  DocumentWalk walk(json);
  const auto note = [&] {
    if (!builder.problem.empty() && wrong_at == 0) wrong_at = walk.position();
  };
  const bool good = walk.headers([&](const nlohmann::json& value) {
    builder.header(value);
    note();
  });
  if (!good) return failure("this is not JSON", json, walk.position());
  if (!builder.has_header()) return failure("a jitdump wants a \"header\"", json, 0);
  walk.records([&](const nlohmann::json& value) {
    builder.record(value);
    note();
  });
  if (!builder.problem.empty()) return failure(std::move(builder.problem), json, wrong_at);
  return std::move(builder).dump();
}

Result<DumpBytes> from_lines(std::string_view json) {
  DumpBuilder builder;
  for (std::size_t offset = 0; offset < json.size();) {
    const std::string_view rest = json.substr(offset);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      const auto value = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
      if (!value.is_object()) return failure("this line is no JSON object", json, offset);
      if (builder.has_header()) {
        builder.record(value);
      } else {
        builder.header(value.value("header", nlohmann::json()));
      }
      if (!builder.problem.empty()) return failure(std::move(builder.problem), json, offset);
    }
    offset += line.size() + 1;
  }
  if (!builder.has_header()) return failure("a jitdump wants a \"header\"", json, 0);
  return std::move(builder).dump();
}

}  // namespace

bool is_dump_json(std::string_view json) noexcept {
  if (says_jitdump(json.substr(0, kLookAt))) return true;
  return json.size() > kLookAt &&
         says_jitdump(json.substr(json.size() - std::min(json.size(), kLookAt)));
}

Result<DumpBytes> dump_from_json(std::string_view json) {
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return failure("a jitdump wants a \"header\"", json, 0);
  const std::string_view rest = json.substr(first);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  const bool more = rest.substr(line.size()).find_first_not_of(" \t\r\n") != std::string_view::npos;
  const bool lines = nlohmann::json::accept(line.begin(), line.end()) &&
                     (more || line.find("\"entries\"") == std::string_view::npos);
  return lines ? from_lines(json) : from_document(json);
}

}  // namespace perfmap
