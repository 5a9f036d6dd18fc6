// SPDX-License-Identifier: MIT
#include "module/shared_library.hpp"

#ifndef PERFMAP_STATIC_PROGRAM
#include <dlfcn.h>
#endif

namespace perfmap {

#ifdef PERFMAP_STATIC_PROGRAM

Result<SharedLibrary> SharedLibrary::open(const std::string& file, const std::string& /*package*/) {
  return Failure(
      Error::unsupported("this perfmap is one static file, and cannot load " + file +
                         ": use the perfmap of a package, which is linked with shared libraries"));
}

void* SharedLibrary::address_of(const char* /*name*/) const noexcept { return nullptr; }

#else

Result<SharedLibrary> SharedLibrary::open(const std::string& file, const std::string& package) {
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(handle);
  return Failure(Error::cannot("load", file, Reason::not_installed, package));
}

void* SharedLibrary::address_of(const char* name) const noexcept { return ::dlsym(handle_, name); }

#endif

}  // namespace perfmap
