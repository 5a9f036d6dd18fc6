#include "perfmap/line_blocks.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes/descriptor.hpp"

namespace perfmap {

struct LineBlocks::State {
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  Descriptor own;
  int fd = -1;
  std::string name;
  std::string buffer;
  std::size_t size = 0;      // of what was read into it
  std::size_t handed = 0;    // of that, what next() gave
  std::size_t kept = 0;      // of that, what was there before the last read
  bool is_skipping = false;  // the rest of a line that was too long
  std::size_t skipped = 0;   // of that line
  bool at_end = false;

  /// Keeps what was not handed out, and reads behind it. Of that, no line has ended yet.
  Result<void> fill() {
    std::memmove(buffer.data(), buffer.data() + handed, size - handed);
    size -= handed;
    handed = 0;
    kept = size;
    if (buffer.size() < size + kBlock) buffer.resize(size + size / 2 + kBlock);
    ssize_t count = 0;
    do {
      count = ::read(fd, buffer.data() + size, kBlock);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return Failure(system_error("cannot read " + name, errno));
    size += static_cast<std::size_t>(count);
    at_end = count == 0;
    return {};
  }

  std::string_view hand_out(std::size_t end) noexcept {
    const std::string_view block = std::string_view(buffer).substr(handed, end - handed);
    handed = end;
    return block;
  }
};

LineBlocks::LineBlocks(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineBlocks::LineBlocks(LineBlocks&&) noexcept = default;
LineBlocks& LineBlocks::operator=(LineBlocks&&) noexcept = default;
LineBlocks::~LineBlocks() = default;

Result<LineBlocks> LineBlocks::open(const std::string& path) {
  const std::string what = "cannot open " + (path.empty() ? "''" : path);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return Failure(system_error(what, errno));
  if (S_ISDIR(status.st_mode)) return Failure(system_error(what, EISDIR));
  LineBlocks blocks = of_descriptor(fd.get(), path);
  blocks.state_->own = std::move(fd);
  return blocks;
}

LineBlocks LineBlocks::of_descriptor(int fd, std::string name) {
  auto state = std::make_unique<State>();
  state->fd = fd;
  state->name = std::move(name);
  return LineBlocks(std::move(state));
}

Result<std::string_view> LineBlocks::next() {
  State& state = *state_;
  while (!state.at_end) {
    const Result<void> filled = state.fill();
    if (!filled) return Failure(filled.error());
    const std::string_view text = std::string_view(state.buffer).substr(0, state.size);
    if (state.is_skipping) {
      const std::size_t newline = text.find('\n');
      state.handed = newline == std::string_view::npos ? text.size() : newline + 1;
      state.is_skipping = newline == std::string_view::npos;
      state.skipped += state.handed;
      if (state.skipped > kEndlessLine) {
        return Failure({Errc::too_large,
                        "cannot read " + state.name + ": a line of more than " +
                            std::to_string(kEndlessLine >> 20) + " MiB",
                        0,
                        {}});
      }
      continue;
    }
    const std::size_t newline = text.substr(state.kept).rfind('\n');
    if (newline != std::string_view::npos) return state.hand_out(state.kept + newline + 1);
    if (text.size() > kMostLine) {
      state.is_skipping = true;
      state.skipped = text.size();
      state.buffer[state.size - 1] = '\n';
      return state.hand_out(text.size());
    }
  }
  return state.hand_out(state.size);
}

const std::string& LineBlocks::name() const noexcept { return state_->name; }

}  // namespace perfmap
