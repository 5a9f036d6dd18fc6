#pragma once

#include <span>
#include <string_view>

#include "perfmap/diagnostic.hpp"

namespace perfmap::lint_rules {

struct Explanation {
  const Rule* rule;
  std::string_view text;
};

/// Those of the JD and XF rules.
std::span<const Explanation> dump_explanations() noexcept;
/// Those of rules about processes and their runtimes.
std::span<const Explanation> process_explanations() noexcept;
/// Those of the PL rules.
std::span<const Explanation> log_explanations() noexcept;

}  // namespace perfmap::lint_rules
