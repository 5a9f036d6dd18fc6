#include "compression/expansion.hpp"
#include "compression/zstd_stream.hpp"

namespace perfmap {

/// Windows of more than 128 MiB, which `zstd --ultra --long` makes, are refused as by zstd itself.
bool expand_zstd(std::string_view bytes, Expansion& out) {
  ZstdStream stream;
  for (;;) {
    const ZstdStream::Step step = stream.step(bytes, out.room());
    bytes.remove_prefix(step.taken);
    if (step.is_damaged || !out.wrote(step.made)) return false;
    if (step.ends_frame && bytes.empty()) return true;
    if (step.made == 0 && step.taken == 0) return false;  // it was cut off
  }
}

}  // namespace perfmap
