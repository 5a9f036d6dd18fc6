// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "console.hpp"

namespace perfmap::app {

/// Shows long text on a terminal as git does: in $PAGER, else in less, with LESS=FRX if LESS is not
/// set, so that text that fits on the terminal stays there. Calls `write` with the output and
/// whether to use colours; a second time if the pager cannot run. `write` must use append_visible()
/// for all that it has from inputs. Without a terminal, with PAGER=cat or an empty PAGER, and on a
/// dumb terminal, there is no pager.
void write_paged(const Console& console,
                 const std::function<void(OutputFile& out, bool color)>& write);

}  // namespace perfmap::app
