// SPDX-License-Identifier: MIT
#include <map>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "perfmap/profile/stack_writer.hpp"
#include "stacks/gzip_stream.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/written.hpp"

namespace perfmap::pprof_names_test {
namespace {

constexpr std::string_view kUnknown = "\xf2\x06\x03odd";  // the unknown field 110

class ProfileBytes {
 public:
  explicit ProfileBytes(const std::vector<std::string>& strings) {
    for (const std::string& text : strings) writer_.add_string(6, text);
  }
  void sample(const std::vector<std::uint64_t>& locations, std::int64_t pid) {
    std::string message;
    {
      protozero::pbf_writer writer(message);
      writer.add_packed_uint64(1, locations.begin(), locations.end());
      const std::vector<std::int64_t> values = {1};
      writer.add_packed_int64(2, values.begin(), values.end());
      if (pid != 0) {
        protozero::pbf_writer label(writer, 3);
        label.add_int64(1, 1);
        label.add_int64(3, pid);
      }
    }
    writer_.add_message(2, message + std::string(kUnknown));
  }
  void mapping(std::uint64_t id, std::uint64_t begin, std::uint64_t end, std::int64_t file) {
    protozero::pbf_writer writer(writer_, 3);
    writer.add_uint64(1, id);
    writer.add_uint64(2, begin);
    writer.add_uint64(3, end);
    writer.add_int64(5, file);
  }
  void location(std::uint64_t id, std::uint64_t mapping, std::uint64_t address,
                std::uint64_t function = 0) {
    std::string message;
    {
      protozero::pbf_writer writer(message);
      writer.add_uint64(1, id);
      writer.add_uint64(2, mapping);
      writer.add_uint64(3, address);
      if (function != 0) protozero::pbf_writer(writer, 4).add_uint64(1, function);
    }
    writer_.add_message(4, message + std::string(kUnknown));
  }
  void function(std::uint64_t id, std::int64_t name) {
    protozero::pbf_writer writer(writer_, 5);
    writer.add_uint64(1, id);
    writer.add_int64(2, name);
  }
  std::string take() { return bytes_ + std::string(kUnknown); }

 private:
  std::string bytes_;
  protozero::pbf_writer writer_{bytes_};
};

std::shared_ptr<JitSources> sources(const std::string& text) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "perf-1.map"));
  return std::make_shared<JitSources>(std::move(maps), std::vector<Jitdump>());
}

/// The names of each sample's locations, leaf first; "?" for a location without a name.
std::vector<std::vector<std::string>> names_in(const std::string& bytes) {
  std::vector<std::string> strings;
  std::map<std::uint64_t, std::int64_t> functions;
  std::map<std::uint64_t, std::uint64_t> locations;
  std::vector<std::vector<std::uint64_t>> samples;
  for (protozero::pbf_reader reader(bytes); reader.next();) {
    const protozero::pbf_tag_type kind = reader.tag();  // the reader forgets it once the field was
                                                        // read
    if (kind == 6) {
      strings.push_back(reader.get_string());
      continue;
    }
    if (kind != 2 && kind != 4 && kind != 5) {
      reader.skip();
      continue;
    }
    const protozero::data_view view = reader.get_view();
    protozero::pbf_reader part(view);
    std::uint64_t id = 0;
    if (kind == 2) samples.emplace_back();
    while (part.next()) {
      const protozero::pbf_tag_type field = part.tag();
      if (kind == 2 && field == 1) {
        for (const std::uint64_t one : part.get_packed_uint64()) samples.back().push_back(one);
      } else if ((kind == 4 || kind == 5) && field == 1) {
        id = part.get_uint64();
        if (kind == 4) locations[id] = 0;
      } else if (kind == 4 && field == 4) {
        protozero::pbf_reader line(part.get_message());
        REQUIRE(line.next(1));
        locations[id] = line.get_uint64();
      } else if (kind == 5 && field == 2) {
        functions[id] = part.get_int64();
      } else {
        part.skip();
      }
    }
  }
  std::vector<std::vector<std::string>> names;
  for (const auto& sample : samples) {
    names.emplace_back();
    for (const std::uint64_t location : sample) {
      const std::uint64_t function = locations.at(location);
      names.back().push_back(
          function == 0 ? "?" : strings.at(static_cast<std::size_t>(functions.at(function))));
    }
  }
  return names;
}

std::pair<PprofNamed, std::string> named(const std::string& bytes, PprofNaming naming) {
  PprofNamed report;
  const std::string text = test::written([&](OutputFile& out) {
    const Result<PprofNamed> done = name_pprof(bytes, naming, out);
    REQUIRE(done);
    report = *done;
  });
  return {report, text};
}

Errc error_of(std::string_view bytes, PprofNaming naming = {}) {
  Errc code = Errc::internal;
  const std::string text = test::written([&](OutputFile& out) {
    const Result<PprofNamed> done = name_pprof(bytes, naming, out);
    REQUIRE(!done);
    code = done.error().code;
  });
  CHECK(text.empty());
  return code;
}

std::string compressed(const std::string& bytes) {
  return test::written([&](OutputFile& out) {
    GzipStream gzip(out);
    gzip.write(bytes);
    gzip.finish();
  });
}

/// Locations 1 and 2 are in anonymous memory, 3 in a file, 4 in no mapping, 5 has a name, and 6 has
/// a placeholder like those of our own profiles.
std::string a_profile(const std::string& memory = "//anon", const std::string& ours = "[anon]") {
  ProfileBytes profile({"", "pid", memory, "/usr/bin/node", "known", ours});
  profile.sample({1, 2, 3, 4, 5, 6}, 7);
  profile.mapping(1, 0x1000, 0x2000, 2);
  profile.mapping(2, 0x4000, 0x5000, 3);
  profile.location(1, 1, 0x1100);
  profile.location(2, 1, 0x1200);
  profile.location(3, 2, 0x4100);
  profile.location(4, 0, 0x7100);
  profile.location(5, 1, 0x1300, 1);
  profile.location(6, 1, 0x1400, 2);
  profile.function(1, 4);
  profile.function(2, 5);
  return profile.take();
}

constexpr const char* kMap =
    "1100 80 first\n1180 80 second\n1300 10 third\n1400 10 sixth\n4100 10 no\n7000 100 seventh\n";

}  // namespace

TEST_CASE("JIT code of a profile gets names, other locations stay unchanged") {
  const auto [memory, ours] =
      GENERATE(table<std::string, std::string>({{"//anon", "[anon]"},
                                                {"/memfd:jit (deleted)", "[memfd:jit (deleted)]"},
                                                {"/dev/shm/jit-7", "[jit-7]"}}));
  const std::string bytes = a_profile(memory, ours);
  REQUIRE(may_be_pprof(bytes));
  pid_t asked = 0;
  const auto [report, text] = named(bytes, {.find = [&](pid_t pid) {
                                      asked = pid;
                                      return sources(kMap);
                                    }});
  CHECK(asked == 7);
  CHECK(report.locations == 6);
  CHECK(report.jit == 4);
  CHECK(report.named == 4);
  // The second and the fourth are return addresses at the end of their function.
  CHECK(names_in(text) == std::vector<std::vector<std::string>>{
                              {"first", "second", "?", "seventh", "known", "sixth"}});
  CHECK(std::string_view(text).find(kUnknown) != std::string_view::npos);
}

TEST_CASE("a caller at a function's start belongs to the function before if a call ends there") {
  const auto caller_at_start = [](const std::string& end) {
    ProfileBytes profile({"", "pid", "//anon"});
    profile.sample({1, 2}, 7);
    profile.mapping(1, 0x1000, 0x2000, 2);
    profile.location(1, 1, 0x1110);
    profile.location(2, 1, 0x1180);
    std::vector<Jitdump> dumps;
    dumps.emplace_back(Input::from_text(test::DumpBytes()
                                            .header()
                                            .load(1, 0x1100, "first", std::string(0x7b, '\0') + end)
                                            .load(1, 0x1180, "second", "\x90")
                                            .text(),
                                        "jit-7.dump"));
    const auto found = std::make_shared<JitSources>(std::vector<Map>(), std::move(dumps));
    return names_in(named(profile.take(), {.find = [&](pid_t) { return found; }}).second)[0][1];
  };
  CHECK(caller_at_start(std::string(5, '\0')) == "second");
  CHECK(caller_at_start("\xe8" + std::string(4, '\0')) == "first");
}

TEST_CASE("mangled names are demangled in profiles, and the system names keep the original") {
  constexpr const char* kMangled = "1100 80 _Z4mapsi\n1180 80 second\n1400 10 _ZN1a1bEv\n";
  const auto find = [&](pid_t) { return sources(kMangled); };
  const auto [report, text] = named(a_profile(), {.find = find});
  CHECK(names_in(text) == std::vector<std::vector<std::string>>{
                              {"maps(int)", "second", "?", "?", "known", "a::b()"}});
  CHECK(std::string_view(text).find("_Z4mapsi") != std::string_view::npos);
  const auto [same, raw] = named(a_profile(), {.find = find, .demangle = false});
  CHECK(names_in(raw).at(0).at(0) == "_Z4mapsi");
  CHECK(std::string_view(raw).find("maps(int)") == std::string_view::npos);
}

TEST_CASE("a profile without JIT code or without names for it is copied unchanged") {
  const std::string bytes = a_profile();
  CHECK(named(bytes, {}).second == bytes);
  const auto none = [](pid_t) { return sources("9999 1 elsewhere\n"); };
  CHECK(named(bytes, {.find = none}).second == bytes);
}

TEST_CASE("the pid label distinguishes the processes that share a location") {
  ProfileBytes profile({"", "pid", "//anon"});
  profile.sample({1, 2}, 7);
  profile.sample({1, 2}, 8);
  profile.sample({2}, 9);
  profile.sample({1}, 0);
  profile.mapping(1, 0x1000, 0x2000, 2);
  profile.location(1, 1, 0x1100);
  profile.location(2, 1, 0x1180);
  const auto find = [](pid_t pid) -> std::shared_ptr<JitSources> {
    if (pid == 7) return sources("1100 100 seven\n");
    if (pid == 8) return sources("1100 80 eight\n1180 80 eight::two\n");
    return nullptr;
  };
  const auto [report, text] = named(profile.take(), {.find = find});
  CHECK(report.jit == 2);
  CHECK(report.named == 2);
  CHECK(report.without_process == 1);
  CHECK(names_in(text) == std::vector<std::vector<std::string>>{
                              {"seven", "seven"}, {"eight", "eight"}, {"?"}, {"?"}});
}

TEST_CASE("a compressed profile stays compressed, and its decompressed size is limited") {
  const std::string bytes = a_profile();
  const auto find = [](pid_t) { return sources(kMap); };
  const std::string plain = named(bytes, {.find = find}).second;
  const std::string packed = compressed(bytes);
  REQUIRE(may_be_pprof(packed));
  const std::string answer = named(packed, {.find = find}).second;
  REQUIRE(is_gzip(answer));
  CHECK(*gunzip(answer, 1 << 20) == plain);
  // Concatenated gzip members are one stream.
  CHECK(named(compressed(bytes.substr(0, 20)) + compressed(bytes.substr(20)), {.find = find})
            .second == answer);
  CHECK(error_of(packed.substr(0, packed.size() / 2)) == Errc::bad_format);
  CHECK(error_of(packed + "rest") == Errc::bad_format);
  CHECK(error_of(packed, {.max_bytes = 100}) == Errc::too_large);
  const std::string bomb = compressed(std::string(std::size_t{80} << 20, '\0'));
  CHECK(error_of(bomb) == Errc::too_large);
}

TEST_CASE("the objects that a profile makes in memory are limited") {
  const auto repeated = [](std::string_view message, std::size_t bytes) {
    std::string profile("\x32\0\x32\x03pid", 7);
    while (profile.size() < bytes) profile += message;
    return profile;
  };
  constexpr std::size_t kMax = std::size_t{64} << 20;
  for (const char field : {'\x12', '\x1a', '\x22', '\x2a', '\x32'}) {
    INFO("field " << (field >> 3));
    const std::string empty = repeated(std::string({field, '\0'}), kMax - 64);
    CHECK(error_of(compressed(empty)) == Errc::too_large);
  }
  // Locations, lines and labels of one object.
  const std::string many = std::string(16 << 20, '\x01');
  const std::string sample = "\x0a\x80\x80\x80\x08" + many;
  CHECK(error_of(compressed(repeated("\x12\x85\x80\x80\x08" + sample, 20 << 20))) ==
        Errc::too_large);
  // What is delivered in full may make as much.
  CHECK(named(repeated(std::string_view("\x12\0", 2), 1 << 20), {}).first.locations == 0);
}

TEST_CASE("the processes of a profile are limited") {
  ProfileBytes profile({"", "pid"});
  profile.location(1, 0, 0x1000);
  for (std::int64_t pid = 1; pid < 70'000; ++pid) profile.sample({1}, pid);
  const std::string bytes = profile.take();
  CHECK(error_of(compressed(bytes)) == Errc::too_large);
  CHECK(named(bytes, {}).first.without_process == 0);
}

TEST_CASE("ids of any size and order are found, the first of equal ones") {
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{3}, UINT64_MAX / 50}) {
    ProfileBytes profile({"", "pid", "one", "other"});
    for (std::uint64_t i = 5; i > 0; --i) {
      profile.function(i * step, 2);
      profile.function(i * step, 3);
      profile.location(i * step, 0, 0x1000 * i, i * step);
    }
    for (std::uint64_t i = 1; i < 6; ++i) profile.sample({i * step}, 1);
    const std::string bytes = profile.take();
    const auto [report, text] = named(bytes, {});
    CHECK(report.locations == 5);
    CHECK(report.jit == 0);
    CHECK(text == bytes);
  }
}

TEST_CASE("data that is not a profile is refused") {
  const std::string bytes = a_profile();
  CHECK(error_of("") == Errc::bad_format);
  CHECK(error_of("1000 10 a map\n") == Errc::bad_format);
  CHECK(error_of(bytes.substr(0, bytes.size() - 2)) == Errc::bad_format);
  CHECK(!may_be_pprof(""));
  CHECK(!may_be_pprof("1000 10 a map\n"));
  CHECK(!may_be_pprof("{\"schema\":1}"));
  CHECK(!may_be_pprof("PERFILE2"));
  CHECK(!may_be_pprof(bytes.substr(0, bytes.size() - 2)));
  ProfileBytes profile({"", "pid"});
  profile.location(UINT64_MAX, 0, 1);
  CHECK(error_of(profile.take()) == Errc::bad_format);
}

}  // namespace perfmap::pprof_names_test
