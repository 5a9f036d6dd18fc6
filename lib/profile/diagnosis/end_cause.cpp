#include "diagnosis/end_cause.hpp"

#include <string_view>

#include "diagnosis/doctor_view.hpp"

namespace perfmap {
namespace {

/// Boost.Context's assembly in which a fiber begins.
bool is_fiber_begin(const EndedStacks& ends) noexcept {
  return ends.function == "make_fcontext" || ends.function == "trampoline_fcontext" ||
         base_name(ends.module).starts_with("libboost_context");
}

/// And in which it is left and resumed. It has no unwinding information.
bool is_fiber_switch(const EndedStacks& ends) noexcept {
  return ends.function == "jump_fcontext" || ends.function == "ontop_fcontext";
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
  if (is_fiber_switch(ends)) return EndCause::fiber_switch;
  if (is_fiber_begin(ends)) return EndCause::fiber_begin;
  if (is_haskell(ends.function)) return EndCause::haskell;
  if (is_musl(ends.module)) return EndCause::musl;
  return ends.no_info >= ends.bad_memory ? EndCause::no_tables : EndCause::astray;
}

std::string_view explain(EndCause cause) noexcept {
  switch (cause) {
    case EndCause::fiber_begin:
      return ", where fibers (boost.context) begin: no caller is missing, as the code that resumed "
             "the fiber has another stack. Nothing has to be done";
    case EndCause::fiber_switch:
      return ", where fibers (boost.context) are switched, in assembly that has no unwinding "
             "information";
    case EndCause::haskell:
      return ": Haskell code keeps its stack in the heap, which perf does not copy, and has no "
             "frame pointers, so no option of perf or ghc shows its callers. The functions that "
             "were sampled are right. GHC's own profiler knows callers: compile with 'ghc -prof "
             "-fprof-auto', and run the program with '+RTS -p'";
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

bool can_scan(EndCause cause) noexcept {
  return cause != EndCause::fiber_begin && cause != EndCause::haskell;
}

}  // namespace perfmap
