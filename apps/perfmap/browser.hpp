// SPDX-License-Identifier: MIT
#pragma once

#include <perfmap/types.hpp>
#include <string>

namespace perfmap::app {

/// Opens a page by the commands of the variable BROWSER, separated by colons, where %s is the page;
/// without it by xdg-open. The first that can be run is used, in the background, without the
/// terminal. Fails if none can be, and if there is no display: for root always, because a browser
/// of root belongs to no one's desktop; for others without BROWSER, which may not need one.
Result<void> open_in_browser(const std::string& page);

}  // namespace perfmap::app
