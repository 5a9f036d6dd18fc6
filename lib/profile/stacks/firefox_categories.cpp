#include "stacks/firefox_categories.hpp"

#include <algorithm>
#include <array>

#include "stacks/code_class.hpp"

namespace perfmap {
namespace {

struct Category {
  std::string_view name;
  std::string_view color;  // one of those that the front end knows; one category has to be grey
};
constexpr std::array<Category, kCodeClasses> kCategories{{
    {"Other", "grey"},
    {"Kernel", "orange"},
    {"Native", "blue"},
    {"Inlined", "lightblue"},
    {"Interpreter", "red"},
    {"JIT: baseline", "yellow"},
    {"JIT: middle tier", "magenta"},
    {"JIT: optimised", "green"},
    {"JIT: runtime's own", "purple"},
    {"JIT", "green"},
}};

}  // namespace

void write_firefox_categories(JsonWriter& json) {
  json.begin_array();
  for (std::uint8_t i = 0; i < kCodeClasses; ++i) {
    json.begin_object();
    json.member("name", kCategories[i].name);
    json.member("color", kCategories[i].color);
    json.key("subcategories");
    json.begin_array();
    json.string("Other");
    for (const Tier& tier : tiers_of(static_cast<CodeClass>(i))) json.string(tier.name);
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

std::uint32_t firefox_subcategory(const FrameFunction& function) noexcept {
  const std::span<const Tier> tiers = tiers_of(code_class(function));
  const auto found = std::ranges::find(tiers, function.tier, &Tier::name);
  return found == tiers.end() ? 0 : static_cast<std::uint32_t>(found - tiers.begin()) + 1;
}

}  // namespace perfmap
