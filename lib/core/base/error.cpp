// SPDX-License-Identifier: MIT
// The sentences of errors, each in one place.
#include <system_error>

#include "perfmap/types.hpp"

namespace perfmap {
namespace {

struct ReasonRow {
  Errc code;
  std::string_view id;
  std::string_view text;
};

constexpr ReasonRow kReasons[] = {
#define PERFMAP_REASON(name, code, id, text) {Errc::code, id, text},
#include "perfmap/reasons.def"
};

const ReasonRow& row_of(Reason reason) noexcept {
  return kReasons[static_cast<std::size_t>(reason)];
}

void replace(std::string& text, char placeholder, const std::string& by) {
  const std::size_t at = text.find(placeholder);
  if (at != text.npos) text.replace(at, 1, by);
}

}  // namespace

std::string_view to_string(Reason reason) noexcept { return row_of(reason).id; }

Error Error::of(Reason reason, std::string path, std::string detail) {
  Error error;
  error.code = row_of(reason).code;
  error.reason = reason;
  error.path = std::move(path);
  error.detail = std::move(detail);
  return error;
}

Error Error::cannot(std::string_view verb, std::string path, Reason reason, std::string detail) {
  Error error = of(reason, std::move(path), std::move(detail));
  error.doing.append("cannot ").append(verb);
  return error;
}

std::string Error::why() const {
  if (!sentence.empty()) return sentence;
  std::string text(row_of(reason).text);
  if (!detail.empty() && text.find('%') == text.npos) return detail;
  if (text.empty()) return std::generic_category().message(sys_errno);
  replace(text, '%', detail);
  if (doing.empty()) replace(text, '@', path);
  return text;
}

std::string Error::message() const {
  if (!sentence.empty() || doing.empty()) return why();
  return doing + (path.empty() ? "" : " " + path) + ": " + why();
}

Error system_error(std::string doing, std::string path, int sys_errno) {
  Error error = Error::of(Reason::system, std::move(path));
  error.doing = std::move(doing);
  error.sys_errno = sys_errno;
  if (sys_errno == ENOENT) error.code = Errc::not_found;
  return error;
}

}  // namespace perfmap
