#include "stacks/firefox_tables.hpp"

namespace perfmap {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789ABCDEF"[byte >> 4];
    text += "0123456789ABCDEF"[byte & 15];
  }
  return text;
}

/// A build-id as Breakpad has it: sixteen bytes, of which the first three fields of a GUID are
/// turned round, and an age of 0.
std::string breakpad_id(std::string_view build_id_hex) {
  std::string id(build_id_hex.substr(0, 32));
  id.resize(32, '0');
  constexpr std::string_view kFrom =
      "67452301"
      "AB89"
      "EFCD";
  std::string turned(id);
  for (std::size_t i = 0; i < kFrom.size(); ++i) {
    const char c = kFrom[i];
    turned[i] = id[static_cast<std::size_t>(c <= '9' ? c - '0' : c - 'A' + 10)];
  }
  return turned + "0";
}

}  // namespace

std::optional<std::uint32_t> FirefoxTables::stack_of(std::span<const StackFrame> frames) {
  std::uint32_t node = 0;
  std::uint32_t holder = 0;
  std::uint32_t depth = 0;
  for (std::size_t i = frames.size(); i-- > 0;) {
    const std::uint32_t place = frames[i].place;
    const bool is_inlined = table_.function_of(place).kind == FrameKind::inlined;
    depth = is_inlined && i + 1 < frames.size() && frames[i + 1].ip == frames[i].ip ? depth + 1 : 0;
    if (depth == 0) holder = place;
    node = stacks_.child(node, add_frame({place, holder, depth, frames[i].is_return}));
  }
  if (node == 0) return std::nullopt;
  return node - 1;
}

std::uint32_t FirefoxTables::add_frame(const Frame& frame) {
  const std::uint32_t number = frames_.add(frame);
  if (number == symbols_of_frames_.size()) describe_frame(frame);
  return number;
}

void FirefoxTables::describe_frame(const Frame& frame) {
  const FramePlace& place = table_.place(frame.place);
  const std::uint32_t function = functions_.of_place(frame.place);
  if (function == libs_of_functions_.size()) describe_function(function, place);

  const FramePlace& holder = table_.place(frame.holder);
  const FrameFunction& symbol = table_.function(holder.function);
  const std::uint32_t lib = lib_of(symbol, holder);
  const bool is_double = holder.vaddr >> 53 == 0;  // which is what readers keep numbers as
  if (symbol.name.empty() || lib == kNone || holder.offset > holder.vaddr || !is_double) {
    symbols_of_frames_.push_back(kNone);
    return;
  }
  symbols_of_frames_.push_back(
      symbols_.add({lib, strings_.add(symbol.name), holder.vaddr - holder.offset}));
}

void FirefoxTables::describe_function(std::uint32_t function, const FramePlace& place) {
  const FrameFunction& shown = functions_.function(function);
  libs_of_functions_.push_back(lib_of(shown, place));
  strings_.add(shown_name(shown));
  if (!shown.file.empty()) sources_.add(strings_.add(shown.file));
}

std::uint32_t FirefoxTables::lib_of(const FrameFunction& function, const FramePlace& place) {
  const FrameMapping& mapping = table_.mapping(place.mapping);
  const std::string_view path = function.module.empty() ? mapping.path : function.module;
  if (path.empty()) return kNone;
  const std::uint32_t number = strings_.add(path);
  strings_.add(file_name_of(path));
  return libs_.add({number, strings_.add(path == mapping.path ? hex(mapping.build_id) : "")});
}

void FirefoxTables::write_libs(JsonWriter& json, std::string_view arch) const {
  const auto text = [&](std::string_view key, std::string_view value) {
    json.key(key);
    json.string(value);
  };
  json.begin_array();
  for (std::uint32_t i = 0; i < libs_.size(); ++i) {
    const std::string_view path = strings_[libs_[i].path];
    const std::string_view build_id = strings_[libs_[i].build_id];
    json.begin_object();
    text("name", file_name_of(path));
    text("path", path);
    text("debugName", file_name_of(path));
    text("debugPath", path);
    text("breakpadId", breakpad_id(build_id));
    json.key("codeId");
    if (build_id.empty()) {
      json.null();
    } else {
      json.string(build_id);
    }
    text("arch", arch);
    json.end_object();
  }
  json.end_array();
}

}  // namespace perfmap
