#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "modules/target.hpp"
#include "perfmap/address.hpp"

namespace perfmap {

/// A CIE: what the FDEs that refer to it have in common. Borrowed from the frames.
struct FrameCie {
  std::uint8_t version = 1;
  std::uint8_t encoding = 0;  ///< DW_EH_PE_… of addresses in its FDEs
  bool has_size = false;      ///< its FDEs say how long their augmentation is
  bool is_signal_frame = false;
  bool uses_b_key = false;        ///< aarch64: return addresses are signed with key B
  std::string_view factors;       ///< of code and data, and the register of the return address
  std::string_view instructions;  ///< all of a known kind, and none with an address in it
};

/// An FDE: how to unwind from the code at `range`.
struct FrameFde {
  AddressRange range;
  const FrameCie* cie = nullptr;  ///< lives during the visit
  std::uint64_t cie_offset = 0;   ///< of its CIE in the frames
  std::string_view instructions;  ///< as for a CIE
};

/// Calls `visit` for each FDE of an .eh_frame that lies at `address`. Answers how many could not be
/// used: damaged, of a kind that nobody writes for a JIT, or with such a CIE. Reading ends at a
/// terminator or where a length makes no sense. O(bytes).
/// Sources: Linux Standard Base 5.0, "Exception Frames"; DWARF 5, 6.4.
std::uint64_t for_each_fde(std::string_view frames, Address address, const Target& target,
                           const std::function<void(const FrameFde&)>& visit);

}  // namespace perfmap
