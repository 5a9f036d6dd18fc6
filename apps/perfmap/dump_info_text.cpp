#include "dump_info_text.hpp"

#include <perfmap/dump_info.hpp>
#include <perfmap/json_writer.hpp>
#include <perfmap/seconds.hpp>

#include "source.hpp"

namespace perfmap::app {
namespace {

constexpr std::uint32_t kKinds = 5;

std::string time_text(std::uint64_t time, bool ticks) {
  return ticks ? std::to_string(time) : seconds_text(time);
}

std::string order_text(const JitdumpHeader& header) {
  return header.order == std::endian::little ? "little-endian" : "big-endian";
}

std::string machine_text(const JitdumpHeader& header) {
  const std::uint32_t machine = header.elf_mach;
  const char* const name = machine == 62    ? " (x86-64)"
                           : machine == 183 ? " (aarch64)"
                           : machine == 3   ? " (i386)"
                           : machine == 40  ? " (arm)"
                           : machine == 243 ? " (riscv)"
                           : machine == 0   ? " (not said)"
                                            : "";
  return std::to_string(machine) + name + ", " + order_text(header);
}

void print_text(OutputFile& out, const Jitdump& dump, SourceKind kind, const DumpInfo& info) {
  const auto row = [&](std::string_view key, const std::string& value) {
    std::string line(key);
    line.resize(16, ' ');
    out.write(line + value + "\n");
  };
  row("source", dump.input().name());
  row("kind", std::string(to_string(kind)));
  row("bytes", std::to_string(info.bytes));
  if (dump.header()) {
    row("pid", std::to_string(dump.header()->pid));
    row("machine", machine_text(*dump.header()));
  }
  for (std::uint32_t id = 0; id < kKinds; ++id) {
    row(std::string(to_string(static_cast<JitRecordKind>(id))), std::to_string(info.records[id]));
  }
  row("unknown", std::to_string(info.unknown_records));
  row("lost bytes", std::to_string(info.lost_bytes));
  if (info.bad_records != 0) row("bad records", std::to_string(info.bad_records));
  row("names", std::to_string(info.names));
  if (info.first_time) {
    const bool ticks = dump.has_tsc_times();
    row("times", time_text(*info.first_time, ticks) + "-" + time_text(info.last_time, ticks) +
                     (ticks ? " ticks" : " s"));
  }
  row("code",
      std::to_string(info.code_bytes) + " bytes, " + std::to_string(info.claimed) + " claimed");
  if (info.covered != 0)
    row("at the end", hex_text(info.first) + "-" + hex_text(info.last) + ", " +
                          std::to_string(info.covered) + " bytes covered");
  row("runtime",
      info.runtime == Runtime::unknown ? "unknown" : std::string(to_string(info.runtime)));
}

void print_header(JsonWriter& json, const Jitdump& dump) {
  if (!dump.header()) return;
  json.key("pid");
  json.number(dump.header()->pid);
  json.key("machine");
  json.number(dump.header()->elf_mach);
  json.key("order");
  json.string(dump.header()->order == std::endian::little ? "little" : "big");
}

void print_records(JsonWriter& json, const DumpInfo& info) {
  json.key("records");
  json.begin_object();
  for (std::uint32_t id = 0; id < kKinds; ++id) {
    json.key(to_string(static_cast<JitRecordKind>(id)));
    json.number(info.records[id]);
  }
  json.key("unknown");
  json.number(info.unknown_records);
  json.end_object();
}

void print_json(OutputFile& out, const Jitdump& dump, SourceKind kind, const DumpInfo& info) {
  JsonWriter json(out);
  const auto number = [&](std::string_view key, std::uint64_t value) {
    json.key(key);
    json.number(value);
  };
  json.begin_object();
  json.key("schema");
  json.string("perfmap.info/1");
  json.key("source");
  json.string(dump.input().name());
  json.key("kind");
  json.string(kind_id(kind));
  number("bytes", info.bytes);
  print_header(json, dump);
  print_records(json, info);
  number("lost_bytes", info.lost_bytes);
  number("bad_records", info.bad_records);
  number("names", info.names);
  if (info.first_time) {
    json.key("first_time");
    json.string(time_text(*info.first_time, dump.has_tsc_times()));
    json.key("last_time");
    json.string(time_text(info.last_time, dump.has_tsc_times()));
  }
  number("code_bytes", info.code_bytes);
  json.key("first");
  json.address(info.first);
  json.key("last");
  json.address(info.last);
  number("covered", info.covered);
  number("claimed", info.claimed);
  json.key("runtime");
  if (info.runtime == Runtime::unknown) {
    json.null();
  } else {
    json.string(to_string(info.runtime));
  }
  json.end_object();
  json.newline();
}

}  // namespace

ExitCode print_dump_info(Jitdump dump, SourceKind kind, bool as_json, const Console& console) {
  const Input input = dump.input();
  Diagnostics problems(1);
  DumpInfo info;
  const Timeline timeline(std::move(dump), problems);
  {
    const Step step(console, "counting");
    info = dump_info(timeline);
  }
  (as_json ? print_json : print_text)(console.out(), timeline.dump(), kind, info);
  if (!is_whole(console, input)) return ExitCode::failed;
  note_skipped_records(console, problems);
  return ExitCode::ok;
}

}  // namespace perfmap::app
