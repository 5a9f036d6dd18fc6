#include "diagnosis/end_cause.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnosis/doctor_view.hpp"

namespace perfmap {
namespace {

/// Boost.Context's assembly, where a coroutine begins or is left.
bool is_fiber(const EndedStacks& ends) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"make_fcontext", "jump_fcontext",
                                                      "ontop_fcontext", "trampoline_fcontext"};
  const std::string_view name = base_name(ends.module);
  return name.starts_with("libboost_context") ||
         std::find(kNames.begin(), kNames.end(), ends.function) != kNames.end();
}

/// GHC's names: Main_work_info, stg_ap_pp_fast, base_GHCziBase_map_info.
bool is_haskell(std::string_view function) noexcept {
  return function.starts_with("stg_") || function.ends_with("_info") ||
         function.ends_with("_info_itable");
}

bool is_musl(std::string_view module) noexcept {
  return base_name(module).starts_with("ld-musl") ||
         module.find("-musl/") != std::string_view::npos;
}

}  // namespace

EndCause cause_of(const EndedStacks& ends) noexcept {
  if (ends.kind == FrameKind::unknown) return EndCause::missing_file;
  if (is_fiber(ends)) return EndCause::fiber;
  if (is_haskell(ends.function)) return EndCause::haskell;
  if (is_musl(ends.module)) return EndCause::musl;
  return ends.no_info >= ends.bad_memory ? EndCause::no_tables : EndCause::astray;
}

std::string_view explain(EndCause cause) noexcept {
  switch (cause) {
    case EndCause::fiber:
      return ", where fibers (boost.context) begin: no caller is missing, as the code that resumed "
             "the fiber has another stack";
    case EndCause::haskell:
      return ": Haskell code has a stack of its own, which cannot be unwound without debug "
             "information; compile it with 'ghc -g'";
    case EndCause::musl:
      return ": musl has no unwinding information without its debug symbols (Alpine: apk add "
             "musl-dbg)";
    case EndCause::no_tables:
      return ", which has no unwinding information for that code: compile it with "
             "-fasynchronous-unwind-tables, or install its debug symbols";
    case EndCause::astray:
      return ", whose unwinding information leads out of the stack there, as for assembly and "
             "code that switches stacks";
    case EndCause::missing_file: break;
  }
  return {};
}

}  // namespace perfmap
