#include "log_source.hpp"

namespace perfmap::app {

Result<LoopProfile> read_loops(const Input& log, TickBase ticks) {
  LoopProfile profile({.base = ticks, .keep_code_bytes = true});
  read_pypylog(log, profile);
  profile.finish();
  if (!log.was_truncated()) return profile;
  return Failure({Errc::io, log.name() + " was truncated while it was read", 0, {}});
}

Result<OpenedInput> dump_of_log(const Input& log, std::uint32_t pid) {
  const Result<LoopProfile> profile = read_loops(log, TickBase::automatic);
  if (!profile) return Failure(profile.error());
  Result<DumpBytes> dump = dump_of_loops(profile->loops(), log.text(), {.pid = pid});
  if (!dump) return Failure({dump.error().code, log.name() + ": " + dump.error().message, 0, {}});
  OpenedInput opened{Input::from_text(std::move(dump->bytes), log.name()), SourceKind::jitdump};
  opened.made_from = SourceKind::pypylog;
  opened.without_code = dump->without_code;
  return opened;
}

}  // namespace perfmap::app
