#include "perfmap/result.hpp"

#include <cerrno>
#include <system_error>

namespace perfmap {

Error system_error(std::string what, int sys_errno) {
  what += ": ";
  what += std::generic_category().message(sys_errno);
  return {sys_errno == ENOENT ? Errc::not_found : Errc::io, std::move(what), sys_errno, {}};
}

}  // namespace perfmap
