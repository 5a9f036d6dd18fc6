#pragma once

#include <cstdint>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace perfmap {

/// Goes over the fields of a protobuf message, whatever the bytes are: never beyond them. Groups,
/// which nobody writes any more, are no fields.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) noexcept : rest_(message) {}

  /// False at the end, and at what is no field: see ok().
  bool next() noexcept {
    if (rest_.empty() || !ok_) return false;
    const std::string_view begin = rest_;
    const std::uint64_t tag = varint();
    field_ = static_cast<std::uint32_t>(tag >> 3);
    bytes_ = {};
    number_ = 0;
    switch (tag & 7) {
      case 0: number_ = varint(); break;
      case 1: take(8); break;
      case 2: take(varint()); break;
      case 5: take(4); break;
      default: ok_ = false;
    }
    is_bytes_ = (tag & 7) == 2;
    is_number_ = (tag & 7) == 0;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) ok_ = false;
    whole_ = begin.substr(0, begin.size() - rest_.size());
    return ok_;
  }

  bool ok() const noexcept { return ok_; }
  std::uint32_t field() const noexcept { return field_; }
  bool is_number() const noexcept { return is_number_; }  ///< a varint
  bool is_bytes() const noexcept { return is_bytes_; }    ///< a string, a message, packed numbers
  std::uint64_t number() const noexcept { return number_; }
  std::string_view bytes() const noexcept { return bytes_; }
  /// With its tag, as it stands in the message.
  std::string_view whole() const noexcept { return whole_; }

  /// Calls `visit(number)` for each number of a repeated field, packed or one by one.
  template <class Visit>
  void numbers(Visit visit) noexcept(noexcept(visit(0))) {
    if (is_number_) visit(number_);
    if (!is_bytes_) return;
    ProtoReader packed(bytes_);
    while (!packed.rest_.empty() && packed.ok_) {
      const std::uint64_t number = packed.varint();
      if (packed.ok_) visit(number);
    }
    ok_ = ok_ && packed.ok_;
  }

 private:
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift < 64) value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
    ok_ = false;
    return 0;
  }
  void take(std::uint64_t size) noexcept {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return;
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  std::string_view bytes_;
  std::string_view whole_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  bool is_bytes_ = false;
  bool is_number_ = false;
  bool ok_ = true;
};

/// What naming has to know of a pprof profile. Borrows its bytes.
class PprofProfile {
 public:
  struct Mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string_view file;
    bool has_build_id = false;
  };
  struct Location {
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    bool is_unnamed_jit = false;
  };
  /// A part of a list that all samples share.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Sample {
    Part locations;  ///< of location_ids(); the leaf first
    pid_t pid = 0;   ///< 0: no label says
  };

  /// False where the bytes are no profile.
  bool read(std::string_view bytes);

  const std::vector<Location>& locations() const noexcept { return locations_; }
  const std::vector<Sample>& samples() const noexcept { return samples_; }
  std::uint64_t location_id(std::size_t at) const noexcept { return location_ids_[at]; }
  /// Position in locations(); its size where there is none.
  std::size_t find(std::uint64_t id) const noexcept;
  std::size_t strings() const noexcept { return strings_.size(); }
  std::uint64_t last_location() const noexcept { return last_location_; }
  std::uint64_t last_function() const noexcept { return last_function_; }

 private:
  struct RawLocation {
    std::uint64_t mapping = 0;
    Part functions;  // of function_ids_
  };
  struct RawMapping {
    std::uint64_t id = 0;
    Mapping mapping;
    std::uint64_t file = 0;
    std::uint64_t build_id = 0;
  };
  struct Label {
    std::uint64_t key = 0;
    std::uint64_t text = 0;
    std::uint64_t number = 0;
  };

  bool read_sample(std::string_view bytes);
  bool read_mapping(std::string_view bytes);
  bool read_location(std::string_view bytes);
  bool read_line(std::string_view bytes);
  bool read_function(std::string_view bytes);
  std::string_view string(std::uint64_t index) const noexcept;
  pid_t pid_of(const Part& labels) const noexcept;
  const Mapping* mapping_of(std::size_t location) const;
  bool has_name(std::size_t location, const Mapping* mapping) const;
  void finish();

  std::vector<std::string_view> strings_;
  std::vector<RawMapping> mappings_;
  std::unordered_map<std::uint64_t, Mapping> mappings_by_id_;
  std::vector<const Mapping*> mappings_by_address_;
  std::unordered_map<std::uint64_t, std::uint64_t> functions_;  // names by id
  std::vector<Location> locations_;
  std::vector<RawLocation> raw_locations_;
  std::unordered_map<std::uint64_t, std::size_t> locations_by_id_;
  std::vector<std::uint64_t> function_ids_;
  std::vector<std::uint64_t> location_ids_;
  std::vector<Label> labels_;
  std::vector<Part> sample_labels_;
  std::vector<Sample> samples_;
  std::uint64_t last_location_ = 0;
  std::uint64_t last_function_ = 0;
};

}  // namespace perfmap
