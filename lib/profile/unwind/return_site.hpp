#pragma once

#include "perfmap/jit_sources.hpp"
#include "perfmap/unwinder.hpp"

namespace perfmap {

/// UnwindSpace::return_site() of a runtime's code at the end, of which nothing but its sources is
/// known.
ReturnSite return_site_in(const JitSources& sources, Address pc);

}  // namespace perfmap
