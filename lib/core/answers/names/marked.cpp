// Runtimes whose names begin with a mark of their own.

#include <array>

#include "answers/names/decoders.hpp"

namespace perfmap::names {
namespace {

using Decode = std::optional<DecodedName> (*)(std::string_view);

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Erlang/OTP: $module:function/arity, $global::stub, "-CodeInfoPrologue" behind either.
std::optional<DecodedName> erlang(std::string_view raw) {
  if (!raw.starts_with('$') || raw.size() < 4) return std::nullopt;
  if (raw.starts_with("$global::")) {
    return DecodedName{.runtime = Runtime::erlang, .tier = "stub", .function = raw.substr(9)};
  }
  const std::size_t slash = raw.rfind('/');
  std::string_view arity = slash == std::string_view::npos ? "" : raw.substr(slash + 1);
  arity = arity.substr(0, arity.find('-'));
  if (raw.find(':') == std::string_view::npos || !all_digits(arity)) return std::nullopt;
  return DecodedName{.runtime = Runtime::erlang, .function = raw.substr(1)};
}

/// PHP 8: JIT$function, JIT$Class::method, JIT$$stub, TRACE-1$function$line.
std::optional<DecodedName> php(std::string_view raw) {
  if (raw.starts_with("JIT$$") || raw.starts_with("jit$$")) {
    return DecodedName{.runtime = Runtime::php, .tier = "stub", .function = raw.substr(5)};
  }
  if (raw.starts_with("JIT$") && raw.size() > 4) {
    DecodedName name{.runtime = Runtime::php, .function = raw.substr(4)};
    if (name.function.starts_with('/')) name.file = name.function;
    return name;
  }
  const std::size_t first = raw.find('$');
  if (!raw.starts_with("TRACE-") || first == std::string_view::npos ||
      !all_digits(raw.substr(6, first - 6))) {
    return std::nullopt;
  }
  DecodedName name{.runtime = Runtime::php, .tier = "trace", .function = raw.substr(first + 1)};
  const std::size_t last = name.function.rfind('$');
  const auto line =
      last == std::string_view::npos ? std::nullopt : parse_decimal(name.function.substr(last + 1));
  if (line && last != 0) {
    name.line = *line;
    name.function = name.function.substr(0, last);
  }
  if (name.function.starts_with('/')) name.file = name.function;
  return name;
}

/// LuaJIT: TRACE_1::file.lua:12.
std::optional<DecodedName> luajit(std::string_view raw) {
  const std::size_t colons = raw.find("::");
  if (!raw.starts_with("TRACE_") || colons == std::string_view::npos ||
      !all_digits(raw.substr(6, colons - 6))) {
    return std::nullopt;
  }
  DecodedName name{.runtime = Runtime::luajit, .tier = "trace", .function = raw.substr(0, colons)};
  if (const auto place = split_place(raw.substr(colons + 2))) {
    name.file = place->path;
    name.line = place->line;
  }
  return name;
}

/// HHVM: PHP::[file::]function.
std::optional<DecodedName> hhvm(std::string_view raw) {
  if (!raw.starts_with("PHP::") || raw.size() == 5) return std::nullopt;
  DecodedName name{.runtime = Runtime::hhvm, .function = raw.substr(5)};
  const std::size_t colons = name.function.find("::");
  if (name.function.starts_with('/') && colons != std::string_view::npos &&
      colons + 2 < name.function.size()) {
    name.file = name.function.substr(0, colons);
    name.function = name.function.substr(colons + 2);
  }
  return name;
}

/// QEMU: guest-0x400123, and its prologue.
std::optional<DecodedName> qemu(std::string_view raw) {
  if (!raw.starts_with("guest-0x") && raw != "tcg-prologue-buffer") return std::nullopt;
  return DecodedName{.runtime = Runtime::qemu, .function = raw};
}

/// wasmtime: wasm[0]::function[12]::name, wasm[0]::array_to_wasm_trampoline[3]; older ones
/// wasm::wasm[0]::…
std::optional<DecodedName> wasm(std::string_view raw) {
  std::string_view rest = raw;
  if (rest.starts_with("wasm::")) rest.remove_prefix(6);
  if (!rest.starts_with("wasm[")) return std::nullopt;
  const std::string_view tier =
      rest.find("trampoline") != std::string_view::npos ? "trampoline" : "wasm";
  const std::size_t name = rest.find("]::", rest.find("::function["));
  if (rest.find("::function[") != std::string_view::npos && name != std::string_view::npos &&
      name + 3 < rest.size()) {
    rest.remove_prefix(name + 3);
  }
  return DecodedName{.runtime = Runtime::wasm, .tier = tier, .function = rest};
}

/// Julia: julia_f_12; japi1_ and jlsys_ for other calling conventions, jfptr_ for wrappers.
std::optional<DecodedName> julia(std::string_view raw) {
  for (const std::string_view prefix : {"julia_", "japi1_", "japi3_", "jfptr_", "jlsys_"}) {
    const std::size_t last = raw.rfind('_');
    if (!raw.starts_with(prefix) || last < prefix.size() + 1 || !all_digits(raw.substr(last + 1))) {
      continue;
    }
    return DecodedName{.runtime = Runtime::julia,
                       .tier = prefix == "jfptr_" ? "adapter" : "",
                       .function = raw.substr(prefix.size(), last - prefix.size())};
  }
  return std::nullopt;
}

/// Ruby's YJIT: "[JIT] label@file:line" for methods, "[JIT] label" for code of its own.
std::optional<DecodedName> ruby(std::string_view raw) {
  if (!raw.starts_with("[JIT] ") || raw.size() == 6) return std::nullopt;
  DecodedName name{.runtime = Runtime::ruby, .function = raw.substr(6)};
  const std::size_t at = name.function.find('@');
  if (at == std::string_view::npos || at == 0) return name;
  const std::size_t colon = name.function.rfind(':');
  const auto line = colon == std::string_view::npos
                        ? std::nullopt
                        : parse_decimal(name.function.substr(colon + 1));
  if (!line || colon <= at + 1) return name;
  name.file = name.function.substr(at + 1, colon - at - 1);
  name.line = *line;
  name.function = name.function.substr(0, at);
  return name;
}

/// PyPy's loops and bridges, as PYPYLOG names them: "Loop 1 (f;/t.py:1-3~#12 FOR_ITER)".
std::optional<DecodedName> pypy(std::string_view raw) {
  const bool bridge = raw.starts_with("bridge out of Guard ");
  const std::size_t open = raw.find(" (");
  if (!bridge && !(raw.starts_with("Loop ") && open != std::string_view::npos &&
                   all_digits(raw.substr(5, open - 5)))) {
    return std::nullopt;
  }
  DecodedName name{.runtime = Runtime::pypy, .tier = "trace", .function = raw};
  const std::size_t semicolon = raw.find(';', open);
  const std::size_t colon =
      semicolon == std::string_view::npos ? semicolon : raw.find(':', semicolon);
  if (bridge || colon == std::string_view::npos || semicolon == open + 2) return name;
  name.function = raw.substr(open + 2, semicolon - open - 2);
  name.file = raw.substr(semicolon + 1, colon - semicolon - 1);
  const std::string_view lines = raw.substr(colon + 1);
  name.line = parse_decimal(lines.substr(0, lines.find_first_not_of("0123456789"))).value_or(0);
  return name;
}

/// Mono: "H:F (int)", "(wrapper KIND) H:F (int)"; "generic_trampoline_jit" and the like are its
/// own.
std::optional<DecodedName> mono(std::string_view raw) {
  if (raw.starts_with("(wrapper ")) {
    return DecodedName{.runtime = Runtime::mono, .tier = "adapter", .function = raw};
  }
  if (raw.ends_with("_trampoline_jit") || raw == "generic_trampoline_jit") {
    return DecodedName{.runtime = Runtime::mono, .tier = "trampoline", .function = raw};
  }
  const std::size_t colon = raw.find(':');
  const std::size_t open = raw.find(" (");
  const bool method = colon != std::string_view::npos && colon != 0 && colon + 1 < open &&
                      open != std::string_view::npos && raw.ends_with(')') &&
                      raw.substr(0, open).find_first_of(" /") == std::string_view::npos &&
                      raw[colon + 1] != ':';
  if (!method) return std::nullopt;
  return DecodedName{.runtime = Runtime::mono, .function = raw};
}

}  // namespace

std::optional<DecodedName> decode_marked(std::string_view raw) {
  constexpr std::array<Decode, 10> kDecoders = {erlang, php,   luajit, hhvm, qemu,
                                                wasm,   julia, ruby,   pypy, mono};
  for (const Decode decode : kDecoders) {
    if (auto name = decode(raw)) return name;
  }
  return std::nullopt;
}

}  // namespace perfmap::names
