#include <algorithm>
#include <cstdint>
#include <vector>

#include "modules/demangle.hpp"
#include "modules/libiberty.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostMangled = 1024;
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 18;  // take about 20 ms

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }

/// An upper bound of the steps of libiberty's parser, which guesses and goes back. After a
/// symbol's name, it reads what may be a function's parameters, and if they lead nowhere, it reads
/// the same bytes again as what follows the symbol. It reads a symbol as a template's argument once
/// for each way to divide the digits before it. Guesses within guesses multiply. A back reference
/// stands for a name, or for a type between its target and itself. From left to right, O(n).
class StepBound {
 public:
  explicit StepBound(std::string_view name)
      : name_(name), is_name_end_(name.size() + 1), before_(name.size() + 1) {
    find_name_ends();
  }

  bool is_at_most(std::uint64_t limit) {
    std::uint64_t ways = 1;  // in which the parser may come to this byte
    std::uint64_t steps = 0;
    for (std::size_t at = 0; at < name_.size() && steps <= limit; ++at) {
      before_[at] = {steps, ways};
      ways *= guesses_at(at);
      steps += ways * steps_at(at, steps);
    }
    return steps <= limit;
  }

 private:
  struct Before {
    std::uint64_t steps = 0;
    std::uint64_t ways = 1;
  };
  struct BackReference {
    std::size_t end = 0;
    std::size_t distance = 0;
  };

  /// A Q, and a number in base 26 whose last digit is a small letter.
  std::optional<BackReference> back_reference(std::size_t at) const noexcept {
    if (name_[at] != 'Q') return std::nullopt;
    std::size_t distance = 0;
    for (std::size_t i = at + 1; i < name_.size() && distance <= name_.size(); ++i) {
      const char c = name_[i];
      if (!is_upper(c) && !is_lower(c)) break;
      distance = 26 * distance + static_cast<std::size_t>(c - (is_upper(c) ? 'A' : 'a'));
      if (is_lower(c)) return BackReference{i + 1, distance};
    }
    return std::nullopt;
  }

  std::size_t end_of_digits(std::size_t at) const noexcept {
    return std::min(name_.find_first_not_of("0123456789", at), name_.size());
  }

  /// Wherever the digits of a name's length may begin. A template's name ends with a Z.
  void find_name_ends() {
    for (std::size_t at = 0; at < name_.size(); ++at) {
      if (name_[at] == 'Z') is_name_end_[at + 1] = true;
      if (const auto back = back_reference(at)) is_name_end_[back->end] = true;
      if (!is_digit(name_[at])) continue;
      std::size_t length = 0;
      const std::size_t end = end_of_digits(at);
      for (std::size_t i = at; i < end && length < name_.size(); ++i) {
        length = 10 * length + static_cast<std::size_t>(name_[i] - '0');
      }
      if (length < name_.size() - end) is_name_end_[end + length] = true;
    }
  }

  /// How often what begins here may be read.
  std::uint64_t guesses_at(std::size_t at) const noexcept {
    constexpr std::string_view kFunctions = "FUVWRYM";
    if (is_name_end_[at] && kFunctions.find(name_[at]) != kFunctions.npos) return 2;
    return name_[at] == 'S' ? end_of_digits(at + 1) - at : 1;
  }

  std::uint64_t steps_at(std::size_t at, std::uint64_t steps) const noexcept {
    const auto back = back_reference(at);
    if (!back || back->distance == 0 || back->distance > at) return 1;
    const std::size_t target = at - back->distance;
    if (is_digit(name_[target])) return 1 + name_.size();
    const std::size_t type = name_.find_first_not_of("AOPxy", target);
    if (is_lower(name_[type])) return 2 + type - target;  // of a basic type
    return 1 + (steps - before_[target].steps) / before_[target].ways;
  }

  std::string_view name_;
  std::vector<bool> is_name_end_;
  std::vector<Before> before_;
};

}  // namespace

/// libiberty bounds nothing: it also calls itself for each level of a type.
std::optional<std::string> demangle_d(std::string_view name) {
  if (name.size() > kMostMangled || !StepBound(name).is_at_most(kMostSteps)) return std::nullopt;
  const LibibertyText text(dlang_demangle(std::string(name).c_str(), 0));
  if (text == nullptr || std::string_view(text.get()) == name) return std::nullopt;
  return std::string(text.get());
}

}  // namespace perfmap
