#pragma once

#include <cstdint>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace perfmap {

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
