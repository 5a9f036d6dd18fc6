# SPDX-License-Identifier: MIT
# Compile options of all our targets. Link it PRIVATE, so that users do not inherit them.
add_library(perfmap_build_flags INTERFACE)
target_compile_features(perfmap_build_flags INTERFACE cxx_std_20 c_std_99)
# gcc 12's -Wrestrict warns wrongly about std::string's operator+ (gcc bug 105651).
target_compile_options(perfmap_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow $<$<BOOL:${PERFMAP_WERROR}>:-Werror>
  -fno-omit-frame-pointer
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # The page with the flame graph is one literal.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-overlength-strings>
  $<$<CONFIG:Release,RelWithDebInfo>:-fstack-protector-strong>)
# A distribution's flags have a level of their own.
if(NOT "${CMAKE_CXX_FLAGS} ${CMAKE_C_FLAGS}" MATCHES "_FORTIFY_SOURCE")
  target_compile_options(perfmap_build_flags INTERFACE
    $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=$<IF:$<BOOL:${PERFMAP_HARDENED}>,3,2>>)
endif()

if(PERFMAP_HARDENED)
  include(CheckPIESupported)
  check_pie_supported()
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  add_compile_options(-fstack-clash-protection)
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # The linker would leave out the marks if a distribution's start files have none, as Debian's.
    add_compile_options(-fcf-protection=full)
    add_link_options(-Wl,-z,ibt -Wl,-z,shstk)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    add_compile_options(-mbranch-protection=standard)
  endif()
endif()
# The path of a build directory is not in what is built there.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

if(PERFMAP_SANITIZE)
  target_compile_options(perfmap_build_flags INTERFACE
    -fsanitize=${PERFMAP_SANITIZE} -fno-sanitize-recover=all
    # A pointer that is null ends the program anyway; checking each costs a tenth of the compilation.
    -fno-sanitize=null
    # ASan sees accesses beyond an object; this check of UBSan costs a seventh of the compilation.
    -fno-sanitize=object-size
    # Undefined behaviour ends the program by SIGILL, for which ASan prints the stack with
    # ASAN_OPTIONS=handle_sigill=1. The data for UBSan's own texts have two million relocations, for which
    # each start of the program takes 0.15 s.
    $<$<CXX_COMPILER_ID:GNU>:-fsanitize-undefined-trap-on-error>
    $<$<CXX_COMPILER_ID:Clang>:-fsanitize-trap=undefined>
    # It compares type descriptions by their address, and each of our libraries has its own.
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>
    # gcc's flow analysis warns wrongly about instrumented code.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(PERFMAP_SANITIZE STREQUAL "thread")
    # TSan does not support atomic_thread_fence(), and gcc warns about it; our fences order stores
    # for other processes.
    target_compile_options(perfmap_build_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
  target_link_options(perfmap_build_flags INTERFACE -fsanitize=${PERFMAP_SANITIZE})
endif()
# For code that is not under test: without UBSan it compiles in half of the time. Link it after
# perfmap_build_flags, because the last option wins.
add_library(perfmap_not_under_test INTERFACE)
if(PERFMAP_SANITIZE)
  target_compile_options(perfmap_not_under_test INTERFACE -fno-sanitize=undefined)
endif()

if(PERFMAP_FUZZ)
  target_compile_options(perfmap_build_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(perfmap_build_flags INTERFACE -fsanitize=address,undefined)
endif()

# Precompiles headers that most files of a target include. With ccache, caching whole files is
# faster.
function(perfmap_precompile target)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  set(headers "")
  foreach(header IN LISTS ARGN)
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
  # gcc 12 does not treat precompiled system headers as such, and warns about libstdc++.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE
      -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
endfunction()
set(perfmap_common_headers <algorithm> <array> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <unordered_map> <vector> <tl/expected.hpp>)

# Objects compiled for speed (NAME_fast: code that the benchmarks measure, with the option `level`) and
# for size (NAME: all other code): -Os generates 40 % of the machine code of -O3, in two thirds of the
# time, and with a sanitizer -O0 takes half of the time of -O1. Both have the same settings; a
# target that links NAME gets the objects of both.
function(perfmap_objects_for_speed_and_size name level)
  add_library(${name} OBJECT)
  add_library(${name}_fast OBJECT)
  foreach(objects IN ITEMS ${name} ${name}_fast)
    target_link_libraries(${objects} PUBLIC tl::expected PRIVATE perfmap_build_flags)
    perfmap_precompile(${objects} ${perfmap_common_headers})
    set_target_properties(${objects} PROPERTIES
      POSITION_INDEPENDENT_CODE ON
      CXX_VISIBILITY_PRESET hidden
      C_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON)
  endforeach()
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  if(PERFMAP_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_compile_options(${name}_fast PRIVATE $<$<CONFIG:Release>:${level}>)
  if(PERFMAP_SANITIZE MATCHES "address")
    target_compile_options(${name}_fast PRIVATE -O1)
  endif()
  target_sources(${name} INTERFACE $<TARGET_OBJECTS:${name}_fast>)
endfunction()
