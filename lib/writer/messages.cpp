// SPDX-License-Identifier: MIT
#include "writer/messages.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/utf8.hpp"
#include "perfmap_writer.h"

namespace perfmap {
namespace {

/// glibc returns the text; POSIX returns 0 and fills the room.
const char* text_of(const char* text, const char*) noexcept { return text; }
[[maybe_unused]] const char* text_of(int failed, const char* room) noexcept {
  return failed == 0 ? room : "unknown error";
}

struct Statuses {
  int sys_errno;
  std::int32_t status;
};
constexpr Statuses kStatuses[] = {
    {0, PERFMAP_OK},
    {ENOENT, PERFMAP_E_NOT_FOUND},
    {ENOMEM, PERFMAP_E_NO_MEMORY},
    {EINVAL, PERFMAP_E_INVALID_ARGUMENT},
    {EILSEQ, PERFMAP_E_INVALID_ARGUMENT},
    {EOVERFLOW, PERFMAP_E_TOO_LARGE},
    {ENOTSUP, PERFMAP_E_UNSUPPORTED},
    {EPERM, PERFMAP_E_REFUSED},
    {ELOOP, PERFMAP_E_REFUSED},
    {EMLINK, PERFMAP_E_REFUSED},
};

template <class... Parts>
WriterMessage make(std::int32_t status, int sys_errno, const char* format,
                   Parts... parts) noexcept {
  WriterMessage made;
  made.status = status;
  made.sys_errno = sys_errno;
  std::snprintf(made.text, sizeof made.text, format, parts...);
  return made;
}

/// What the writers mean by an error; nullptr: what the system means.
const char* our_meaning(int sys_errno) noexcept {
  switch (sys_errno) {
    case EBUSY: return "another writer has it open";
    case EILSEQ: return "some readers would misread the name (NAMES_REFUSE)";
    default: return nullptr;
  }
}

}  // namespace

std::int32_t status_of(int sys_errno) noexcept {
  for (const Statuses& row : kStatuses) {
    if (row.sys_errno == sys_errno) return row.status;
  }
  return PERFMAP_E_IO;
}

WriterMessage message_of(const char* what, const char* path, int sys_errno) noexcept {
  char room[256] = {};
  const char* meaning = our_meaning(sys_errno);
  if (meaning == nullptr) meaning = text_of(::strerror_r(sys_errno, room, sizeof room), room);
  WriterMessage made = make(status_of(sys_errno), sys_errno, "%s %s: %s", what, path, meaning);
  made.reason = sys_errno == ELOOP    ? PERFMAP_REASON_SYMBOLIC_LINK
                : sys_errno == EMLINK ? PERFMAP_REASON_HARD_LINKS
                                      : PERFMAP_REASON_SYSTEM;
  std::snprintf(made.path, sizeof made.path, "%s", path);
  return made;
}

WriterMessage whole_message(const char* what, int sys_errno) noexcept {
  return make(status_of(sys_errno), sys_errno, "%s", what);
}
WriterMessage argument_message(const char* what) noexcept { return whole_message(what, EINVAL); }

WriterMessage copy_message(const char* from, const char* to, int sys_errno) noexcept {
  if (sys_errno == EINVAL) {
    return make(PERFMAP_E_INVALID_ARGUMENT, EINVAL,
                "cannot copy %s: it is the same file, or not a regular file", from);
  }
  const WriterMessage reason = message_of("", to, sys_errno);
  WriterMessage made = message_of("cannot copy", from, sys_errno);
  std::snprintf(made.text, sizeof made.text, "cannot copy %s to%.*s", from,
                static_cast<int>(sizeof made.text / 2), reason.text);
  return made;
}

WriterMessage dump_message(const DumpFault& fault, const char* path) noexcept {
  switch (fault.kind) {
    case DumpFault::Kind::open:
    case DumpFault::Kind::begin: break;
    case DumpFault::Kind::no_exec:
      return make(PERFMAP_E_IO, fault.error,
                  "cannot open %s: its file system is mounted noexec, and perf finds a dump by an "
                  "executable mapping: use another directory",
                  path);
    case DumpFault::Kind::append:
      return make(PERFMAP_E_BAD_FORMAT, EINVAL, "cannot append to %s: %s", path, fault.why.data());
    case DumpFault::Kind::in_use:
      return make(PERFMAP_E_REFUSED, EBUSY,
                  "cannot append to %s: process %d has it open for writing", path, fault.pid);
  }
  return message_of("cannot open", path, fault.error);
}

WriterMessage log_message(const char* path, int sys_errno) noexcept {
  if (sys_errno == EBADMSG) {
    return make(PERFMAP_E_BAD_FORMAT, EINVAL, "cannot open %s: it is not a log", path);
  }
  return message_of("cannot open", path, sys_errno);
}

WriterMessage no_counter_message() noexcept {
  return make(PERFMAP_E_UNSUPPORTED, ENOTSUP, "%s", "this machine has no known counter");
}

WriterMessage no_trampolines_message() noexcept {
  return make(PERFMAP_E_UNSUPPORTED, ENOTSUP, "%s", "trampolines do not support this machine");
}

WriterMessage trampoline_message(std::string_view name, int sys_errno) noexcept {
  char shown[1024];  // the name, cut, as it is written to a map
  constexpr std::size_t kMax = (sizeof shown - 1) / 4;
  *escape_name(shown, first_bytes(name, kMax)) = '\0';
  return message_of("cannot compile a trampoline for", shown, sys_errno);
}

WriterMessage activation_message(const TrampolineFault& fault) noexcept {
  switch (fault.kind) {
    case TrampolineFault::Kind::argument: break;
    case TrampolineFault::Kind::map:
      return message_of("cannot open", "the process's map", fault.error);
    case TrampolineFault::Kind::dump: return dump_message(fault.dump, fault.path);
  }
  return argument_message("backend: no such backend");
}

}  // namespace perfmap
