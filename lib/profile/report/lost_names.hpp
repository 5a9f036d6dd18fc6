// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/profile/report.hpp"
#include "report/function_identity.hpp"

namespace perfmap {

/// The shares of a recording's samples that are in functions, and in code without a name. Borrows
/// the report.
class NamedShares {
 public:
  /// With `totals`, samples also count for the callers in their stacks.
  NamedShares(const ProfileReport& report, const ProfileReport::Event& event, bool totals);

  /// Why functions cannot be compared with those of the other recording, if this one has no names
  /// for more than a twentieth of the samples, in code that has names in the other one. All
  /// recordings have some code without names. So what counts is by how much there is more of it,
  /// and that functions of the other recording are missing here.
  std::optional<std::string> lost_since(const NamedShares& other) const;

 private:
  /// An ELF file, all JIT code, or what is in no known file.
  struct Code {
    double unnamed = 0;
    std::map<FunctionIdentity, double> named = {};

    double missing_of(const Code& other) const;
  };

  std::string why(std::string_view code, double unnamed, const NamedShares& other) const;

  std::string_view title_;
  std::map<std::string_view, Code> codes_;  // by file name; see lost_names.cpp for other code
};

}  // namespace perfmap
