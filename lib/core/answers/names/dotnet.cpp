// .NET: `instance void [System.Linq] Ns.Type+Nested::Method(int32,int32)[OptimizedTier1]`, and
// stubs as `stub<12> GenerateDispatchStub<owner>`, or `stub TYPE<owner>` where they are grouped.
// Source: dotnet/runtime, src/coreclr/vm/perfmap.cpp.

#include <array>

#include "answers/names/decoders.hpp"

namespace perfmap::names {
namespace {

struct Tier {
  std::string_view suffix;
  std::string_view tier;
};

constexpr std::array kTiers = {
    Tier{"[PreJIT]", "prejit"},
    Tier{"[PreJit-cold]", "prejit"},
    Tier{"[MinOptJitted]", "tier0"},
    Tier{"[Optimized]", "tier1"},
    Tier{"[QuickJitted]", "tier0"},
    Tier{"[OptimizedTier1]", "tier1"},
    Tier{"[OptimizedTier1OSR]", "tier1"},
    Tier{"[OptimizedTier1Instrumented]", "instrumented"},
    Tier{"[Tier0]", "tier0"},
    Tier{"[Tier0Instrumented]", "instrumented"},
    Tier{"[InstrumentedTier]", "instrumented"},
    Tier{"[InstrumentedTierOptimized]", "instrumented"},
    Tier{"[InstrumentedTier0]", "instrumented"},
    Tier{"[InstrumentedTier1]", "instrumented"},
    Tier{"[Tier1]", "tier1"},
    Tier{"[ReJIT]", "tier1"},
};

/// "Ns.Type::Method(int32)": from the assembly's bracket on, or the last blank before the colons.
/// Generic arguments of the type may hold blanks.
std::string_view method_of(std::string_view signature) {
  const std::size_t colons = signature.find("::");
  if (colons == std::string_view::npos) return {};
  const std::size_t assembly = signature.rfind("] ", colons);
  if (assembly != std::string_view::npos) return signature.substr(assembly + 2);
  const std::size_t start = signature.rfind(' ', colons);
  return start == std::string_view::npos ? signature : signature.substr(start + 1);
}

bool has_assembly(std::string_view signature) {
  const std::size_t open = signature.find('[');
  return open != std::string_view::npos && signature.find("] ", open) < signature.find("::");
}

}  // namespace

std::optional<DecodedName> decode_dotnet(std::string_view raw) {
  DecodedName name{.runtime = Runtime::dotnet};
  const bool grouped = raw.starts_with("stub ") && raw.ends_with('>') && raw.find('<') < raw.size();
  if (raw.starts_with("stub<") || grouped) {
    name.tier = "stub";
    name.function = raw;
    return name;
  }
  std::string_view signature = raw;
  for (const Tier& tier : kTiers) {
    if (!raw.ends_with(tier.suffix)) continue;
    name.tier = tier.tier;
    signature.remove_suffix(tier.suffix.size());
    break;
  }
  if (name.tier.empty() && !has_assembly(signature)) return std::nullopt;
  name.function = method_of(signature);
  if (name.function.empty()) return std::nullopt;
  return name;
}

}  // namespace perfmap::names
