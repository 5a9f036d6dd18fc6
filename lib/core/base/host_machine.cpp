#include "perfmap/host_machine.hpp"

#include <elf.h>

namespace perfmap {

std::uint32_t host_machine() noexcept {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__i386__)
  return EM_386;
#elif defined(__arm__)
  return EM_ARM;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#elif defined(__s390x__)
  return EM_S390;
#elif defined(__loongarch__)
  return EM_LOONGARCH;
#else
  return EM_NONE;
#endif
}

}  // namespace perfmap
