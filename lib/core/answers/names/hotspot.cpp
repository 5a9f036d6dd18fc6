// HotSpot: external method names with return type and parameters, and the names of its own code
// blobs; agents over JVMTI: Lfoo/Bar;::baz and chains `a->b->c`. Source: hotspot/share/code,
// formats of jcmd Compiler.perfmap; perf-map-agent's unfold options.

#include <array>

#include "answers/names/decoders.hpp"

namespace perfmap::names {
namespace {

struct Blob {
  std::string_view prefix;
  std::string_view tier;
};

constexpr std::array kBlobs = {
    Blob{"Interpreter", "interpreter"},
    Blob{"StubRoutines (", "stub"},
    Blob{"I2C/C2I adapters", "adapter"},
    Blob{"vtable stub", "stub"},
    Blob{"itable stub", "stub"},
    Blob{"DeoptimizationBlob", "stub"},
    Blob{"UncommonTrapBlob", "stub"},
    Blob{"ExceptionBlob", "stub"},
    Blob{"SafepointBlob", "stub"},
    Blob{"RuntimeStub - ", "stub"},
    Blob{"MethodHandlesAdapterBlob", "adapter"},
};

/// "RETURN PACKAGE.CLASS.METHOD(PARAMETERS)": one blank, before a dotted name, and brackets at the
/// end. Anything looser would take C++ signatures for Java.
bool is_external_name(std::string_view raw) {
  const std::size_t open = raw.find('(');
  const std::size_t blank = raw.find(' ');
  if (!raw.ends_with(')') || open == std::string_view::npos || blank >= open) return false;
  const std::string_view method = raw.substr(blank + 1, open - blank - 1);
  return method.find('.') != std::string_view::npos &&
         method.find_first_of(" :*&") == std::string_view::npos &&
         raw.substr(0, blank).find_first_of(":*&(") == std::string_view::npos;
}

bool is_descriptor_name(std::string_view raw) {
  return raw.starts_with('L') && raw.find(";::") != std::string_view::npos;
}

void split_chain(std::string_view raw, DecodedName& name) {
  while (true) {
    const std::size_t arrow = raw.find("->");
    name.inline_chain.push_back(raw.substr(0, arrow));
    if (arrow == std::string_view::npos) break;
    raw.remove_prefix(arrow + 2);
  }
  name.function = name.inline_chain.back();
}

}  // namespace

std::optional<DecodedName> decode_hotspot(std::string_view raw) {
  DecodedName name{.runtime = Runtime::hotspot, .function = raw};
  for (const Blob& blob : kBlobs) {
    if (!raw.starts_with(blob.prefix)) continue;
    name.tier = blob.tier;
    return name;
  }
  const std::size_t arrow = raw.find("->");
  const bool chain = arrow != std::string_view::npos && arrow != 0 && arrow + 2 < raw.size() &&
                     is_descriptor_name(raw.substr(0, arrow));
  if (chain) {
    split_chain(raw, name);
    return name;
  }
  if (is_external_name(raw)) {
    name.function = raw.substr(raw.find(' ') + 1);
    return name;
  }
  if (is_descriptor_name(raw)) return name;
  return std::nullopt;
}

}  // namespace perfmap::names
