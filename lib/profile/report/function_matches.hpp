// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>

#include "perfmap/profile/stack_writer.hpp"
#include "report/function_identity.hpp"

namespace perfmap {

/// The functions of two versions of a program, by what they are called in both. A file of a script
/// may have several functions of a name, such as methods of several classes: V8 names them without
/// their class. They differ by their positions, which changes of the file move.
class FunctionMatches {
 public:
  enum class Side : std::uint8_t { before, after };

  /// A function as in a recording. Views must outlive the object.
  struct Function {
    FrameKind kind = FrameKind::unknown;
    std::string_view shown = {};  ///< name without its tier
    std::string_view system_name = {};
    std::string_view module = {};
  };

  /// Adds a function with samples in itself or in what it called.
  void add(Side side, const Function& function, std::uint64_t samples);
  /// Call it after the last add().
  void match();

  struct Match {
    FunctionIdentity identity = {};
    /// More than 1: functions that are not told apart, and count together.
    std::size_t functions = 1;
    /// Where the function begins, if others have its name: in the new version if it is there.
    std::uint64_t line = 0;
    std::uint64_t column = 0;
  };
  Match of(Side side, const Function& function) const;

 private:
  struct Place {
    std::string_view path = {};
    std::uint64_t line = 0;
    std::uint64_t column = 0;

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Found {
    std::uint64_t samples = 0;
    std::uint32_t ordinal = 0;
  };
  using Places = std::map<Place, Found>;
  /// The functions with one number: on each side how many, and the first of the new version, or
  /// else of the old one.
  struct Numbered {
    std::array<std::size_t, 2> functions = {};
    Place first;
  };
  struct Group {
    std::array<Places, 2> sides;
    std::map<std::uint32_t, Numbered> by_ordinal;  ///< after match()
  };

  static Place place_of(const Function& function);
  static void match(std::array<Places, 2>& sides);
  static void count(Group& group);

  std::map<FunctionIdentity, Group> groups_;
};

}  // namespace perfmap
