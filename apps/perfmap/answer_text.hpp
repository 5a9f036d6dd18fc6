#pragma once

#include <perfmap/json_writer.hpp>
#include <perfmap/resolver.hpp>
#include <span>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// Where the name of an answer comes from.
struct AnswerSource {
  const Input* input = nullptr;
  const Map* map = nullptr;        ///< null: a jitdump
  const CodeLine* line = nullptr;  ///< the source line, where it is asked for and known
};

/// Prints the answers of `resolve`, one by one: perf's own frame shape, or JSON.
class AnswerWriter {
 public:
  AnswerWriter(const Console& console, const std::string& format);

  void write(Address address, const Resolution& answer, const AnswerSource& source);
  void finish();
  std::uint64_t misses() const noexcept { return misses_; }

 private:
  enum class Form { text, json, jsonl };
  void write_text(Address address, const ResolvedName& name, const AnswerSource& source);
  void write_json(Address address, const ResolvedName& name, const AnswerSource& source);
  void write_unknown(Address address, Unresolved why);
  void write_bytes(std::string_view bytes);

  const Console& console_;
  Form form_;
  JsonWriter json_;
  std::uint64_t misses_ = 0;
};

}  // namespace perfmap::app
