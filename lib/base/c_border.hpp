// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <exception>
#include <new>

#include "base/c_struct.hpp"
#include "perfmap.h"
#include "perfmap/types.hpp"

namespace perfmap::capi {

/// Hands out a text or an array, which stays the library's.
template <class From, class T>
void lend(const From& from, T*& data, std::size_t& size) noexcept {
  data = from.data();
  size = from.size();
}

inline perfmap_status report(const Error& error, perfmap_error* out) noexcept {
  if (out != nullptr) {
    perfmap_error filled{};
    filled.sys_errno = error.sys_errno;
    filled.offset = error.where.offset;
    error.message().copy(filled.message, sizeof filled.message - 1);
    filled.reason = static_cast<int32_t>(error.reason);
    error.path.copy(filled.path, sizeof filled.path - 1);
    copy_out(filled, out);
  }
  return static_cast<perfmap_status>(error.code);
}

/// The status of a Result<void>.
inline perfmap_status report(const Result<void>& result, perfmap_error* out) noexcept {
  return result ? PERFMAP_OK : report(result.error(), out);
}

/// For an argument that the function does not take, such as "path: NULL".
inline perfmap_status invalid(const char* message, perfmap_error* out) {
  return report(Error::invalid(message), out);
}

/// Runs `body` and turns exceptions into a status. All C functions that may throw use it. `given`
/// are the structs of the call, which must be complete.
template <class Body, class... Structs>
perfmap_status guard(perfmap_error* out, Body body, const Structs*... given) noexcept {
  if (!is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  try {
    if (!(is_complete(given) && ...)) {
      return report(Error::invalid("struct_size: smaller than the struct").with_errno(EINVAL), out);
    }
    return body();
  } catch (const std::bad_alloc&) {
    return report(Error::told(Errc::no_memory, "out of memory"), out);
  } catch (const std::exception& bug) {
    return report(Error::told(Errc::internal, bug.what()), out);
  } catch (...) {  // thrown by a caller's visitor
    return report(Error::told(Errc::internal, "unknown exception"), out);
  }
}

}  // namespace perfmap::capi
