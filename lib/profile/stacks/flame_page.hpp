#pragma once

#include <string_view>

namespace perfmap {

/// The page that shows stacks, but for its data, which stand between the two parts. Made of
/// flame_page.html, flame_page.css and flame_page_*.js when the library is built. Static storage.
struct FlamePage {
  std::string_view before_data;
  std::string_view after_data;
};
FlamePage flame_page() noexcept;

}  // namespace perfmap
