#pragma once

#include <string_view>

namespace perfmap {

/// What stands around the body of the page of loops; made by loop_page.cmake.
struct LoopPageFrame {
  std::string_view before_body;
  std::string_view after_body;
};
LoopPageFrame loop_page_frame() noexcept;

}  // namespace perfmap
