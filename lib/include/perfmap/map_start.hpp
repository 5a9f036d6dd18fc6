#pragma once

#include <cstdint>

namespace perfmap {

/// What a writer found at its path when it opened the file.
enum class MapStart : std::uint8_t {
  none,              ///< no file is open
  made,              ///< nothing, or an empty file
  emptied,           ///< the map of an earlier process of this pid, which is gone now
  inherited,         ///< nothing: the file begins with the parent's entries
  appended,          ///< entries that this process may have written; they stay
  appended_kept,     ///< an earlier process's entries; they stay, as was asked for
  appended_in_use,   ///< the same, but another writer has the file open, or nobody can tell
  appended_foreign,  ///< a file of another user; its entries stay
};

}  // namespace perfmap
