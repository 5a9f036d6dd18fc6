#include "perfmap/elf_image.hpp"

#include <elf.h>

#include "modules/image_file.hpp"

namespace perfmap {

Result<ElfImageCounts> write_elf_image(const Timeline& timeline, const JitDetails& details,
                                       std::uint64_t time, OutputFile& out) {
  ElfImageCounts counts;
  const Target target = target_of(timeline.dump().header());
  Result<ImageCode> code = collect_code(timeline, time, target, counts);
  if (!code) return Failure(std::move(code.error()));
  make_clusters(*code);
  const Result<ImageBegin> written =
      write_image_file(timeline, details, target, *std::move(code), ET_EXEC, counts, out);
  if (!written) return Failure(written.error());
  return counts;
}

}  // namespace perfmap
