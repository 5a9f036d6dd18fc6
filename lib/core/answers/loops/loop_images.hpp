#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/compiled_loops.hpp"

namespace perfmap {

/// The numbers of the loops that have machine code, in the order in which the log places them.
std::vector<std::uint32_t> placed_loops(std::span<const CompiledLoop> loops);

/// Which bytes of a log's jit-backend-dump sections are the code of which loop.
///
/// PyPy writes a loop's code in one piece before it says whose it is, and then changes a few bytes
/// of it at a time, such as where a guard jumps. A piece waits for the loop that is placed on it.
/// Changes go to what waits at that address, else to the loop placed there last.
///
/// Memory is proportional to the writes, whatever addresses they claim. O((n + k) log k) for k
/// writes. Borrows nothing.
class LoopImages {
 public:
  /// `order` as placed_loops() has it.
  LoopImages(const CompiledLoops& loops, std::span<const std::uint32_t> order);

  /// Appends the code of that loop, all range.size bytes of it. False where the log does not have
  /// all of them: the rest are zeros.
  bool append(const CompiledLoop& loop, std::uint32_t number, std::string_view log,
              std::string& out) const;
  /// Whether it has any.
  bool has(std::uint32_t number) const noexcept { return !images_[number].pieces.empty(); }

 private:
  struct Piece {
    Address begin = 0;
    std::uint64_t size = 0;
    std::uint64_t hex = 0;  // where in the log
    std::uint64_t end() const noexcept { return begin + size; }
    Piece from(Address address) const noexcept {
      return {address, end() - address, hex + 2 * (address - begin)};
    }
    Piece up_to(Address address) const noexcept { return {begin, address - begin, hex}; }
  };
  struct Image {
    std::vector<Piece> pieces = {};  // later ones lie over earlier ones
    std::uint64_t whole = 0;         // bytes that were there when it was placed
  };
  struct Owner {
    Address end = 0;
    std::uint32_t loop = 0;
  };

  void write(const Piece& piece);
  void place(const AddressRange& range, std::uint32_t loop);
  void cut_waiting(Address at);
  void cut_owners(Address at);

  std::map<Address, Piece> waiting_;  // disjoint
  std::map<Address, Owner> owners_;   // disjoint
  std::vector<Image> images_;         // by loop
};

}  // namespace perfmap
