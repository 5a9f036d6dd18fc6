#pragma once

#include <cerrno>
#include <fcntl.h>

namespace perfmap {

/// Takes, changes or gives back (F_WRLCK, F_RDLCK, F_UNLCK) the lock of a whole file, without
/// waiting. It is the open file description's (F_OFD_SETLK): of this descriptor and its copies,
/// those in children included, until all of them are closed. 0; EBUSY where another one has it;
/// else an errno value, as descriptors that cannot read or write and some file systems have none.
inline int lock_file(int fd, short type) noexcept {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return 0;
  return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

}  // namespace perfmap
