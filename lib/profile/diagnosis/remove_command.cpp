#include "diagnosis/remove_command.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfmap/shell_word.hpp"

namespace perfmap {
namespace {

bool may_write_to(const std::string& directory, const struct stat& status, uid_t reader) noexcept {
  if (reader == ::geteuid()) {
    return ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  }
  // The groups of another user are not known.
  const mode_t wanted = status.st_uid == reader ? S_IWUSR | S_IXUSR : S_IWOTH | S_IXOTH;
  return (status.st_mode & wanted) == wanted;
}

/// unlink(2): with the sticky bit, as of /tmp, only the owners of the file and of the directory.
bool may_remove(const std::string& path, const struct stat& file, uid_t reader) noexcept {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return false;
  if (!may_write_to(directory, status, reader)) return false;
  // What is in a directory of another user is that user's.
  if (S_ISDIR(file.st_mode) && file.st_uid != reader) return false;
  const bool is_sticky = (status.st_mode & S_ISVTX) != 0;
  return !is_sticky || file.st_uid == reader || status.st_uid == reader;
}

}  // namespace

std::string remove_command(const std::string& path, uid_t reader) {
  struct stat file {};
  const bool is_there = ::lstat(path.c_str(), &file) == 0;
  const bool may = reader == 0 || (is_there && may_remove(path, file, reader));
  const bool is_directory = is_there && S_ISDIR(file.st_mode);
  return std::string(may ? "" : "sudo ") + (is_directory ? "rm -r " : "rm ") + shell_word(path);
}

}  // namespace perfmap
