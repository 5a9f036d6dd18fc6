// For systems without perf maps: a runtime can still call all functions.

#include "perfmap/writer.hpp"

namespace perfmap {

int ProcessMap::configure(const ProcessMapOptions&) noexcept { return 0; }
int ProcessMap::set_fork_policy(ForkPolicy) noexcept { return 0; }
MapStart ProcessMap::start() noexcept { return MapStart::none; }
int ProcessMap::init() noexcept { return 0; }
int ProcessMap::write(Address, std::uint64_t, std::string_view) noexcept { return 0; }
int ProcessMap::copy(const char*) noexcept { return 0; }
int ProcessMap::flush() noexcept { return 0; }
ForkPolicy ProcessMap::fork_policy() noexcept { return ForkPolicy::fresh; }
ForkPolicy ProcessMap::began_as() noexcept { return ForkPolicy::fresh; }
int ProcessMap::fini() noexcept { return 0; }

}  // namespace perfmap
