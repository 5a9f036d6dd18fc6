// SPDX-License-Identifier: MIT
#include "writer/map_owner.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/hash.hpp"

namespace perfmap {
namespace {

constexpr char kAttribute[] = "user.perfmap.owner";

/// What the attribute holds.
struct Mark {
  std::uint64_t process = 0;  // machine start, pid namespace, pid, start time
  std::uint64_t image = 0;    // the addresses that exec(2) has chosen
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  return hash_of_bytes({reinterpret_cast<const char*>(&value), sizeof value}, hash);
}

/// The beginning of a small file; 0 bytes if it cannot be read.
template <std::size_t kSize>
std::string_view read_file(const char* path, std::array<char, kSize>& room) noexcept {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.is_open() ? ::read(file.get(), room.data(), room.size()) : -1;
  return {room.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

bool our_mark(Mark& mark) noexcept {
  std::array<char, 64> room;
  const std::string_view boot = read_file("/proc/sys/kernel/random/boot_id", room);
  struct stat space {};
  std::uint64_t start = 0;
  if (boot.empty() || ::stat("/proc/self/ns/pid", &space) != 0 || !get_start_ticks(start)) {
    return false;
  }
  const std::uint64_t hash = mix(mix(hash_of_bytes(boot), space.st_ino), space.st_dev);
  mark.process = mix(mix(hash, static_cast<std::uint64_t>(::getpid())), start);
  // Without address space randomization, the same program again cannot be told apart.
  mark.image = kHashOfNothing;
  for (const int what : {AT_RANDOM, AT_SYSINFO_EHDR, AT_ENTRY, AT_EXECFN}) {
    mark.image = mix(mark.image, ::getauxval(static_cast<unsigned long>(what)));
  }
  return true;
}

}  // namespace

/// The second field is a name in parentheses, and may contain blanks and parentheses.
bool get_start_ticks(std::uint64_t& ticks) noexcept {
  constexpr int kAfterName = 20;
  std::array<char, 1024> room;
  std::string_view stat = read_file("/proc/self/stat", room);
  const std::size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) return false;
  stat.remove_prefix(name_end);
  for (int i = 0; i < kAfterName; ++i) {
    const std::size_t blank = stat.find(' ');
    if (blank == stat.npos) return false;
    stat.remove_prefix(blank + 1);
  }
  return std::from_chars(stat.data(), stat.data() + stat.size(), ticks).ec == std::errc();
}

MapOwner owner_of(int fd) noexcept {
  Mark ours;
  Mark found;
  if (::fgetxattr(fd, kAttribute, &found, sizeof found) != sizeof found || !our_mark(ours)) {
    return MapOwner::unknown;
  }
  if (found.process != ours.process) return MapOwner::another_process;
  return found.image == ours.image ? MapOwner::this_image : MapOwner::former_image;
}

void mark_as_ours(int fd) noexcept {
  Mark ours;
  if (our_mark(ours)) ::fsetxattr(fd, kAttribute, &ours, sizeof ours, 0);
}

}  // namespace perfmap
