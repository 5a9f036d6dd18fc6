// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "perfmap_writer.h"

/// Tables of perfmap_layout. Offsets, sizes and kinds come from the compiler; only names are
/// listed, and tests/capi/check_layouts.py compares these with the headers. Needs libc alone.
namespace perfmap::capi {

template <class Member>
constexpr std::int32_t layout_kind() {
  if (std::is_array_v<Member>) return PERFMAP_LAYOUT_BYTES;
  if (std::is_pointer_v<Member>) return PERFMAP_LAYOUT_POINTER;
  return std::is_signed_v<Member> ? PERFMAP_LAYOUT_SIGNED : PERFMAP_LAYOUT_UNSIGNED;
}

}  // namespace perfmap::capi

// PERFMAP_LAYOUT(struct, member...): the rows of a struct. The expansions below rescan the list,
// one member each: up to 27 members.
#define PERFMAP_LAYOUT_PARENTHESES ()
#define PERFMAP_LAYOUT_EXPAND(...) \
  PERFMAP_LAYOUT_EXPAND1(PERFMAP_LAYOUT_EXPAND1(PERFMAP_LAYOUT_EXPAND1(__VA_ARGS__)))
#define PERFMAP_LAYOUT_EXPAND1(...) \
  PERFMAP_LAYOUT_EXPAND2(PERFMAP_LAYOUT_EXPAND2(PERFMAP_LAYOUT_EXPAND2(__VA_ARGS__)))
#define PERFMAP_LAYOUT_EXPAND2(...) \
  PERFMAP_LAYOUT_EXPAND3(PERFMAP_LAYOUT_EXPAND3(PERFMAP_LAYOUT_EXPAND3(__VA_ARGS__)))
#define PERFMAP_LAYOUT_EXPAND3(...) __VA_ARGS__
#define PERFMAP_LAYOUT_MEMBERS(record, member, ...)                    \
  {#record, #member, offsetof(record, member), sizeof(record::member), \
   perfmap::capi::layout_kind<decltype(record::member)>()},            \
      __VA_OPT__(PERFMAP_LAYOUT_AGAIN PERFMAP_LAYOUT_PARENTHESES(record, __VA_ARGS__))
#define PERFMAP_LAYOUT_AGAIN() PERFMAP_LAYOUT_MEMBERS
#define PERFMAP_LAYOUT(record, ...)                        \
  {#record, "", 0, sizeof(record), PERFMAP_LAYOUT_STRUCT}, \
      PERFMAP_LAYOUT_EXPAND(PERFMAP_LAYOUT_MEMBERS(record, __VA_ARGS__))
