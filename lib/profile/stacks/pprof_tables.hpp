#pragma once

#include <span>
#include <string>
#include <vector>

#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

/// The field numbers of pprof's messages.
/// Source: github.com/google/pprof, proto/profile.proto.
namespace pprof {
enum Profile : std::uint32_t {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  default_sample_type = 14,
};
}  // namespace pprof

/// Mappings, functions and locations of a profile, in order of first use. Borrows the table and the
/// strings. Returned numbers are pprof ids, from 1.
class PprofTables {
 public:
  PprofTables(const FrameTable& table, bool merge_tiers, StringPool& strings)
      : table_(table), frames_(table, merge_tiers, false), strings_(strings) {}

  /// The location of `frames`: any number of inlined frames, and the function that contains them.
  std::uint32_t location_of(std::span<const StackFrame> frames, std::string_view process_comm);

  /// The mapping of the main binary of a sample's process; 0: unknown. The first one counts.
  void note_program(std::uint32_t mapping) noexcept {
    if (program_ == 0) program_ = mapping;
  }

  bool is_inlined(const StackFrame& frame) const {
    return table_.function_of(frame.place).kind == FrameKind::inlined;
  }

  /// Calls `emit(field, message)` for each message, in order of field and id.
  template <class Emit>
  void write(Emit emit) {
    std::string message;
    put_main_first();
    for (std::uint32_t id = 1; id <= mappings_.size(); ++id) {
      write_mapping(id, message);
      emit(pprof::mapping, message);
    }
    for (std::uint32_t id = 1; id <= locations_.size(); ++id) {
      write_location(id, message);
      emit(pprof::location, message);
    }
    for (std::uint32_t id = 1; id <= frames_.size(); ++id) {
      write_function(id, message);
      emit(pprof::function, message);
    }
  }

 private:
  Address address_of(const StackFrame& frame) const;
  struct Location {
    std::uint32_t lines;  // a node of lines_
    Address address;
    friend bool operator==(const Location&, const Location&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Location& location) const noexcept {
      return Hash().add(location.lines).add(location.address).value();
    }
  };

  void add_mapping(std::uint32_t number, std::string_view process_comm);
  std::uint32_t main_mapping() const noexcept;
  void put_main_first();
  void write_mapping(std::uint32_t id, std::string& message);
  void write_location(std::uint32_t id, std::string& message);
  void write_function(std::uint32_t id, std::string& message);

  const FrameTable& table_;
  ShownFrames frames_;
  StringPool& strings_;
  StackTree lines_;  // of places, innermost first
  InternTable<Location, HashOf> locations_;
  std::vector<std::uint32_t> mappings_;     // by id: index in the table
  std::vector<std::uint32_t> mapping_ids_;  // by index in the table; 0: none yet
  std::uint32_t program_ = 0;               // mapping index of the main binary, if samples have it
  std::uint32_t named_after_ = 0;           // the first mapping that has the name of its process
};

}  // namespace perfmap
