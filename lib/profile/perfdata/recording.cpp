#include "perfmap/recording.hpp"

#include "perfdata/header_records.hpp"
#include "perfdata/record_stream.hpp"
#include "perfdata/recording_state.hpp"

namespace perfmap {
namespace {

/// The records at the beginning that are about the recording, not about what was recorded. Where
/// they end.
std::uint64_t read_leading_records(std::string_view file, const RecordBytes& where,
                                   Description& description) {
  Diagnostics ignored(1);  // the reader comes across them again
  RecordStream stream(file, where, description.is_swapped, description.facts.is_pipe);
  std::uint64_t end = where.begin;
  while (const auto found = stream.next(ignored)) {
    if (found->header.type < static_cast<std::uint32_t>(RecordType::header_attr)) break;
    if (found->was_compressed || stream.lost_bytes() != 0) break;
    read_header_record(found->header, found->bytes, description);
    end = found->offset + found->bytes.size();
  }
  return end;
}

}  // namespace

Recording::Recording(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Result<Recording> Recording::open(Input input) {
  auto state = std::make_unique<State>();
  const std::string_view file = input.text();
  const Result<RecordBytes> records = read_file_header(file, state->description);
  if (!records) {
    Error error = records.error();
    error.message = input.name() + " is no recording: " + error.message;
    return Failure(std::move(error));
  }
  if (state->description.is_directory) {
    return Failure({Errc::unsupported,
                    input.name() + " belongs to a directory, whose other files have the records",
                    0,
                    {}});
  }
  state->records = *records;
  state->described_until = read_leading_records(file, *records, state->description);
  state->input = std::move(input);
  return Recording(std::move(state));
}

const Input& Recording::input() const noexcept { return state_->input; }
const RecordingFacts& Recording::facts() const noexcept { return state_->description.facts; }
std::span<const RecordedEvent> Recording::events() const noexcept {
  return state_->description.events;
}

}  // namespace perfmap
