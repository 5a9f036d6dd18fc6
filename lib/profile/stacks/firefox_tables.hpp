#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/json_writer.hpp"
#include "stacks/shown_frames.hpp"
#include "stacks/stack_tree.hpp"
#include "stacks/string_pool.hpp"

namespace perfmap {

/// What threads of a Firefox profile share: stacks, frames, functions, native symbols, libraries,
/// sources and strings. Borrows the frame table.
class FirefoxTables {
 public:
  FirefoxTables(const FrameTable& table, bool merge_tiers)
      : table_(table), functions_(table, merge_tiers, false) {}

  /// The stack of `frames`, the leaf first; nothing where there are none.
  std::optional<std::uint32_t> stack_of(std::span<const StackFrame> frames);

  void write_libs(JsonWriter& json, std::string_view arch) const;
  /// The members of "shared".
  void write_shared(JsonWriter& json);

 private:
  struct Frame {
    std::uint32_t place;
    std::uint32_t holder;  // the place that it is inlined into, or its own
    std::uint32_t depth;   // of inlining; 0: not inlined
    bool is_return;
    friend bool operator==(const Frame&, const Frame&) = default;
  };
  struct Symbol {
    std::uint32_t lib;
    std::uint32_t name;
    Address address;
    friend bool operator==(const Symbol&, const Symbol&) = default;
  };
  struct Lib {
    std::uint32_t path;      // numbers of strings
    std::uint32_t build_id;  // in hexadecimal
    friend bool operator==(const Lib&, const Lib&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Frame& frame) const noexcept {
      return Hash()
          .add(std::uint64_t{frame.place} << 32 | frame.holder)
          .add(std::uint64_t{frame.depth} << 1 | (frame.is_return ? 1 : 0))
          .value();
    }
    std::size_t operator()(const Symbol& symbol) const noexcept {
      return Hash().add(std::uint64_t{symbol.lib} << 32 | symbol.name).add(symbol.address).value();
    }
    std::size_t operator()(std::uint32_t number) const noexcept {
      return Hash().add(number).value();
    }
    std::size_t operator()(const Lib& lib) const noexcept {
      return Hash().add(std::uint64_t{lib.path} << 32 | lib.build_id).value();
    }
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t add_frame(const Frame& frame);
  void describe_frame(const Frame& frame);
  void describe_function(std::uint32_t function, const FramePlace& place);
  std::uint32_t lib_of(const FrameFunction& function, const FramePlace& place);

  void write_stacks(JsonWriter& json) const;
  void write_frames(JsonWriter& json);
  void write_functions(JsonWriter& json);
  void write_symbols(JsonWriter& json) const;
  void write_resources(JsonWriter& json);
  void write_sources(JsonWriter& json) const;

  const FrameTable& table_;
  ShownFrames functions_;
  StackTree stacks_;  // of frames
  Numbered<Frame, HashOf> frames_;
  std::vector<std::uint32_t> symbols_of_frames_;
  std::vector<std::uint32_t> libs_of_functions_;
  Numbered<Symbol, HashOf> symbols_;
  Numbered<Lib, HashOf> libs_;
  StringPool strings_;
  Numbered<std::uint32_t, HashOf> sources_;  // of strings
};

}  // namespace perfmap
