#include <cerrno>
#include <unistd.h>
#include <utility>

#include "bytes/append_file.hpp"
#include "bytes/map_start.hpp"
#include "bytes/whole_file.hpp"

namespace perfmap {

int AppendFile::inherit(const char* path, std::uint64_t size, std::string_view more,
                        bool empty_stale) noexcept {
  constexpr int kTries = 3;  // others may do things meanwhile
  WholeFile whole;
  int error = whole.create(path);
  if (error == 0) error = whole.append_lines(fd_.get(), size);
  if (error == 0) error = whole.append(more);
  for (int i = 0; error == 0 && i < kTries; ++i) {
    error = whole.publish();
    if (error != EEXIST) break;
    AppendFile found;
    error = found.open(path, true, empty_stale);
    if (error != 0) return error;
    if (found.is(file())) return EBUSY;
    if (found.start_ != MapStart::made && found.start_ != MapStart::emptied) {
      return found.take_over(*this, whole.descriptor(), whole.size());
    }
    if (::unlink(path) != 0 && errno != ENOENT) return errno;
  }
  if (error != 0) return error;
  close();  // the parent's, where it is still that
  fd_ = whole.take();
  file_ = file_number(fd_.get());
  begin_map(fd_.get(), false);  // for the lock
  start_ = MapStart::inherited;
  size_ = whole.size();
  newline_first_ = false;
  return 0;
}

/// Appends those bytes to this file, and stands in for `target` from then on.
int AppendFile::take_over(AppendFile& target, int source, std::uint64_t count) noexcept {
  ::lseek(source, 0, SEEK_SET);
  const int error = copy_bytes(source, count);
  if (error == 0) target = std::move(*this);
  return error;
}

}  // namespace perfmap
