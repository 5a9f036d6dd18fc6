// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

/// A mapping as profiles list it.
struct ListedMapping {
  Address begin = 0;
  Address end = 0;
  std::uint64_t offset = 0;  ///< in the file
  std::string file;          ///< escaped; "[jit]" if code of a runtime has no file
  std::string build_id;      ///< hexadecimal digits; empty: none
  /// What all of its locations have; a symbolizer may look for the rest in the file.
  bool has_functions = true;
  bool has_files = true;
  bool has_lines = true;
};

/// A function of a location, and the line in it.
struct ListedLine {
  std::uint32_t function = 0;  ///< id
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// An address, and the functions that have code there: the innermost inlined function first.
struct ListedLocation {
  std::uint32_t mapping = 0;  ///< id; 0: none
  Address address = 0;        ///< of the call, if it is a caller's
  /// Without functions that have no name: the address in the file stands for those, so that a
  /// symbolizer can name them.
  std::vector<ListedLine> lines = {};
  std::uint32_t place = 0;  ///< of the function that contains the others
};

/// Mappings, functions and locations of a profile, in order of first use. Their ids count from 1.
/// Borrows the table.
class ProfileTables {
 public:
  ProfileTables(const FrameTable& table, bool merge_tiers)
      : table_(table), frames_(table, merge_tiers, false) {}

  /// The location of `frames`: any number of inlined frames, and the function that contains them.
  std::uint32_t location_of(std::span<const StackFrame> frames, std::string_view process_comm);
  /// Calls `visit(location)` for the locations of a stack, the root first.
  template <class Visit>
  void for_each_location(const StackSample& sample, Visit visit);

  /// The mapping of the main binary of a sample's process; 0: unknown. The first one counts.
  void note_program(std::uint32_t mapping) noexcept {
    if (program_ == 0) program_ = mapping;
  }
  /// Gives the main binary the first id, even if it has no frames: pprof expects that. Call it
  /// once, when all locations are known.
  void put_main_first();

  std::uint32_t mappings() const noexcept { return static_cast<std::uint32_t>(mappings_.size()); }
  std::uint32_t locations() const noexcept { return static_cast<std::uint32_t>(locations_.size()); }
  std::uint32_t functions() const noexcept { return static_cast<std::uint32_t>(frames_.size()); }
  /// Call it when all locations are known.
  ListedMapping mapping(std::uint32_t id);
  ListedLocation location(std::uint32_t id);
  const FrameFunction& function(std::uint32_t id) const noexcept {
    return frames_.function(id - 1);
  }

 private:
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

  bool is_inlined(const StackFrame& frame) const {
    return table_.function_of(frame.place).kind == FrameKind::inlined;
  }
  bool is_in_file(const FramePlace& place) const noexcept;
  Address address_of(const StackFrame& frame) const;
  void add_mapping(std::uint32_t number, std::string_view process_comm);
  void note_what_is_known();
  std::uint32_t main_mapping() const noexcept;

  const FrameTable& table_;
  ShownFrames frames_;
  StackTree lines_;  // of places, innermost first
  InternTable<Location, HashOf> locations_;
  std::vector<std::uint32_t> mappings_;     // by id: index in the table
  std::vector<std::uint32_t> mapping_ids_;  // by index in the table; 0: none yet
  std::vector<ListedMapping> known_;        // by id: what the locations have
  std::uint32_t program_ = 0;               // mapping index of the main binary, if samples have it
  std::uint32_t named_after_ = 0;           // the first mapping that has the name of its process
};

template <class Visit>
void ProfileTables::for_each_location(const StackSample& sample, Visit visit) {
  std::size_t end = sample.frames.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && is_inlined(sample.frames[begin - 1]) &&
           sample.frames[begin - 1].ip == sample.frames[end - 1].ip) {
      --begin;
    }
    visit(location_of(sample.frames.subspan(begin, end - begin), sample.process_comm));
    end = begin;
  }
}

/// The name of a function in the file that has its code.
std::string_view linker_name(const FrameFunction& function) noexcept;

/// The sampling period, if it is constant, or follows from the frequency of a time; 0: unknown.
std::uint64_t period_of(const StackProfile::Event& event) noexcept;

}  // namespace perfmap
