// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

/// The messages of OpenTelemetry's profiles, as much of them as the writer needs.
/// Source: github.com/open-telemetry/opentelemetry-proto, v1.11.0:
/// opentelemetry/proto/profiles/v1development/profiles.proto, common/v1/common.proto and
/// resource/v1/resource.proto. The numbers differ from those of v1.9 and older.

namespace perfmap::otlp {

inline constexpr std::string_view kProto = "v1.11.0";
inline constexpr std::string_view kPackage = "opentelemetry.proto.profiles.v1development";

/// A field of a message: its number in protobuf, and its name in JSON.
struct Field {
  std::uint32_t number;
  std::string_view name;
};

namespace data {
inline constexpr Field kResourceProfiles{1, "resourceProfiles"}, kDictionary{2, "dictionary"};
}
namespace dictionary {
inline constexpr Field kMappings{1, "mappingTable"}, kLocations{2, "locationTable"},
    kFunctions{3, "functionTable"}, kLinks{4, "linkTable"}, kStrings{5, "stringTable"},
    kAttributes{6, "attributeTable"}, kStacks{7, "stackTable"};
}
namespace resource_profiles {
inline constexpr Field kResource{1, "resource"}, kScopeProfiles{2, "scopeProfiles"};
}
namespace resource {
inline constexpr Field kAttributes{1, "attributes"};
}
namespace scope_profiles {
inline constexpr Field kScope{1, "scope"}, kProfiles{2, "profiles"};
}
namespace scope {
inline constexpr Field kName{1, "name"}, kVersion{2, "version"}, kAttributes{3, "attributes"};
}
namespace profile {
inline constexpr Field kSampleType{1, "sampleType"}, kSamples{2, "samples"},
    kTime{3, "timeUnixNano"}, kDuration{4, "durationNano"}, kPeriodType{5, "periodType"},
    kPeriod{6, "period"};
}
namespace sample {
inline constexpr Field kStack{1, "stackIndex"}, kAttributes{2, "attributeIndices"},
    kValues{4, "values"}, kTimes{5, "timestampsUnixNano"};
}
namespace value_type {
inline constexpr Field kType{1, "typeStrindex"}, kUnit{2, "unitStrindex"};
}
namespace stack {
inline constexpr Field kLocations{1, "locationIndices"};
}
namespace location {
inline constexpr Field kMapping{1, "mappingIndex"}, kAddress{2, "address"}, kLines{3, "lines"},
    kAttributes{4, "attributeIndices"};
}
namespace line {
inline constexpr Field kFunction{1, "functionIndex"}, kLine{2, "line"}, kColumn{3, "column"};
}
namespace function {
inline constexpr Field kName{1, "nameStrindex"}, kSystemName{2, "systemNameStrindex"},
    kFile{3, "filenameStrindex"};
}
namespace mapping {
inline constexpr Field kBegin{1, "memoryStart"}, kEnd{2, "memoryLimit"}, kOffset{3, "fileOffset"},
    kFile{4, "filenameStrindex"}, kAttributes{5, "attributeIndices"};
}
namespace link {
inline constexpr Field kTrace{1, "traceId"}, kSpan{2, "spanId"};
}
namespace key_value {
inline constexpr Field kKey{1, "key"}, kValue{2, "value"};
}
namespace key_value_and_unit {
inline constexpr Field kKey{1, "keyStrindex"}, kValue{2, "value"};
}
namespace any_value {
inline constexpr Field kString{1, "stringValue"}, kInt{3, "intValue"};
}

}  // namespace perfmap::otlp
