// SPDX-License-Identifier: MIT
#pragma once

#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>

#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "stacks/otlp_fields.hpp"

namespace perfmap::otlp {

/// Writes the fields of a message as protobuf. A field with its default value is left out.
class ProtoMessage {
 public:
  explicit ProtoMessage(std::string& bytes) : bytes_(&bytes), writer_(bytes) {}

  void index(const Field& field, std::uint32_t value) {
    if (value != 0) writer_.add_int32(field.number, static_cast<std::int32_t>(value));
  }
  void integer(const Field& field, std::int64_t value) {
    if (value != 0) writer_.add_int64(field.number, value);
  }
  /// Of a oneof, whose default value is not left out.
  void chosen_integer(const Field& field, std::int64_t value) {
    writer_.add_int64(field.number, value);
  }
  void chosen_string(const Field& field, std::string_view text) { add(field, text); }
  void whole(const Field& field, std::uint64_t value) {
    if (value != 0) writer_.add_uint64(field.number, value);
  }
  void fixed(const Field& field, std::uint64_t value) {
    if (value != 0) writer_.add_fixed64(field.number, value);
  }
  void string(const Field& field, std::string_view text) {
    if (!text.empty()) add(field, text);
  }
  void bytes(const Field& field, std::string_view value) { add(field, value); }

  void indices(const Field& field, std::span<const std::uint32_t> values) {
    if (!values.empty()) writer_.add_packed_int32(field.number, values.begin(), values.end());
  }
  void integers(const Field& field, std::span<const std::uint64_t> values) {
    if (!values.empty()) writer_.add_packed_int64(field.number, values.begin(), values.end());
  }
  void fixeds(const Field& field, std::span<const std::uint64_t> values) {
    if (!values.empty()) writer_.add_packed_fixed64(field.number, values.begin(), values.end());
  }

  /// `fill(message)` writes the fields of a message in this one.
  template <class Fill>
  void message(const Field& field, Fill fill) {
    add_message(field, fill);
  }
  /// `fill(message, i)` writes the fields of each of `count` messages.
  template <class Fill>
  void messages(const Field& field, std::size_t count, Fill fill) {
    for (std::size_t i = 0; i < count; ++i) {
      add_message(field, [&](ProtoMessage& message) { fill(message, i); });
    }
  }
  template <class At>
  void strings(const Field& field, std::size_t count, At at) {
    for (std::size_t i = 0; i < count; ++i) add(field, at(i));
  }

 private:
  ProtoMessage(ProtoMessage& outer, const Field& field)
      : bytes_(outer.bytes_), writer_(outer.writer_, field.number) {}

  template <class Fill>
  void add_message(const Field& field, Fill fill) {
    const std::size_t size = bytes_->size();
    {
      ProtoMessage inner(*this, field);
      fill(inner);
    }
    // protozero leaves out a message without fields.
    if (bytes_->size() == size) writer_.add_message(field.number, "", 0);
  }
  void add(const Field& field, std::string_view text) {
    writer_.add_string(field.number, text.data(), text.size());
  }

  std::string* bytes_;
  protozero::pbf_writer writer_;
};

/// The same as the members of a JSON object, in OTLP's mapping of protobuf to JSON: numbers of 64
/// bits are strings, and ids hexadecimal digits.
/// Source: github.com/open-telemetry/opentelemetry-proto, docs/specification.md.
class JsonMessage {
 public:
  explicit JsonMessage(JsonWriter& json) : json_(json) {}

  void index(const Field& field, std::uint32_t value) {
    if (value != 0) json_.member(field.name, std::uint64_t{value});
  }
  void integer(const Field& field, std::int64_t value) {
    if (value != 0) json_.member(field.name, std::to_string(value));
  }
  void chosen_integer(const Field& field, std::int64_t value) {
    json_.member(field.name, std::to_string(value));
  }
  void chosen_string(const Field& field, std::string_view text) { json_.member(field.name, text); }
  void whole(const Field& field, std::uint64_t value) {
    if (value != 0) json_.member(field.name, std::to_string(value));
  }
  void fixed(const Field& field, std::uint64_t value) { whole(field, value); }
  void string(const Field& field, std::string_view text) {
    if (!text.empty()) json_.member(field.name, text);
  }
  void bytes(const Field& field, std::string_view value) {
    json_.member(field.name, hex_of_bytes(value));
  }

  void indices(const Field& field, std::span<const std::uint32_t> values) {
    array(field, values, [this](std::uint32_t value) { json_.number(value); });
  }
  void integers(const Field& field, std::span<const std::uint64_t> values) {
    array(field, values, [this](std::uint64_t value) { json_.string(std::to_string(value)); });
  }
  void fixeds(const Field& field, std::span<const std::uint64_t> values) {
    integers(field, values);
  }

  template <class Fill>
  void message(const Field& field, Fill fill) {
    json_.key(field.name);
    object([&] { fill(*this); });
  }
  template <class Fill>
  void messages(const Field& field, std::size_t count, Fill fill) {
    if (count == 0) return;
    json_.begin_array(field.name);
    for (std::size_t i = 0; i < count; ++i) object([&] { fill(*this, i); });
    json_.end_array();
  }
  template <class At>
  void strings(const Field& field, std::size_t count, At at) {
    json_.begin_array(field.name);
    for (std::size_t i = 0; i < count; ++i) json_.string(at(i));
    json_.end_array();
  }

 private:
  template <class Write>
  void object(Write write) {
    json_.begin_object();
    write();
    json_.end_object();
  }
  template <class Value, class Write>
  void array(const Field& field, std::span<const Value> values, Write write) {
    if (values.empty()) return;
    json_.begin_array(field.name);
    for (const Value value : values) write(value);
    json_.end_array();
  }

  JsonWriter& json_;
};

}  // namespace perfmap::otlp
