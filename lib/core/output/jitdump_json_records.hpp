#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "perfmap/jitdump_encode.hpp"

namespace perfmap {

/// A record of a dump's JSON, made into bytes.
struct JsonRecord {
  std::string problem;        ///< why there is none, if not empty
  bool without_code = false;  ///< zeros stand for its code
};

/// Appends the record that an object of "entries" or "records" describes to what `encoder` writes.
JsonRecord encode_json_record(const nlohmann::json& object, JitdumpEncoder& encoder);

/// "header", and what lies behind its 40 known bytes.
struct JsonDumpHeader {
  JitdumpHeader header;
  std::string extra;
  std::string problem;
};
JsonDumpHeader read_json_header(const nlohmann::json& object);

}  // namespace perfmap
