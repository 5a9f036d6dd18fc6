#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "perfmap.h"
#include "perfmap/types.hpp"

namespace perfmap::capi {

/// Copies `value` to the caller's struct, at most as much as the caller's struct_size.
template <class T>
void copy_out(T value, T* out) noexcept {
  value.struct_size = std::min(out->struct_size, sizeof value);
  std::memcpy(out, &value, value.struct_size);
}

/// Reads the caller's struct; members that it is too short for are zero.
template <class T>
T copy_in(const T* in) noexcept {
  T value{};
  if (in != nullptr) std::memcpy(&value, in, std::min(in->struct_size, sizeof value));
  return value;
}

inline perfmap_status report(const Error& error, perfmap_error* out) noexcept {
  if (out != nullptr) {
    perfmap_error filled{0, error.sys_errno, error.where.offset, {}};
    error.message.copy(filled.message, sizeof filled.message - 1);
    copy_out(filled, out);
  }
  return static_cast<perfmap_status>(error.code);
}

/// The status of a Result<void>.
inline perfmap_status report(const Result<void>& result, perfmap_error* out) noexcept {
  return result ? PERFMAP_OK : report(result.error(), out);
}

/// Runs `body` and turns exceptions into a status. All C functions that may throw use it.
template <class Body>
perfmap_status guard(perfmap_error* out, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(Error{Errc::no_memory, "out of memory", 0, {}}, out);
  } catch (const std::exception& bug) {
    return report(Error{Errc::internal, bug.what(), 0, {}}, out);
  } catch (...) {  // thrown by a caller's visitor
    return report(Error{Errc::internal, "unknown exception", 0, {}}, out);
  }
}

}  // namespace perfmap::capi
