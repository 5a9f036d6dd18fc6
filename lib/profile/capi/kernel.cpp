// SPDX-License-Identifier: MIT
#include "capi/handles.hpp"
#include "perfmap/profile/source.hpp"

using namespace perfmap::capi;

struct perfmap_kernel {
  perfmap::KernelNames names;
};

perfmap_status perfmap_kernel_begin(const char* kallsyms, perfmap_kernel** out,
                                    perfmap_error* error) {
  return guard(error, [&] {
    auto names = kallsyms == nullptr ? perfmap::KernelNames::of_running()
                                     : perfmap::KernelNames::open(kallsyms);
    if (!names) return report(names.error(), error);
    *out = new perfmap_kernel{*std::move(names)};
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_kernel_name(const perfmap_kernel* kernel, uint64_t address,
                                   perfmap_address_name* out, perfmap_error* error) {
  return guard(
      error,
      [&] {
        perfmap_address_name named{};
        const auto found = kernel->names.find(address);
        if (found) {
          lend(found->name, named.name, named.name_size);
          named.begin = found->begin;
          lend(found->module, named.source, named.source_size);
        } else {
          named.why = PERFMAP_NO_NAME_NO_SYMBOL;
        }
        copy_out(named, out);
        if (found) return PERFMAP_OK;
        return report(perfmap::Error::not_found("no function of the kernel is there"), error);
      },
      out);
}

void perfmap_kernel_end(perfmap_kernel* kernel) { delete kernel; }
