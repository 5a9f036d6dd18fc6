// SPDX-License-Identifier: MIT
// Findings about stacks that end early.

#include "doctor/recording.hpp"
#include "support/recorded_fake_process.hpp"

namespace perfmap::test::end_findings_test {
namespace {

using Strings = std::vector<std::string>;

struct EndedCase {
  RecordedSamples samples;
  RecordingDoctorOptions options;
  std::optional<RecordCommand> command =
      RecordCommand::parse(Strings{"perf", "record", "--call-graph", "dwarf", "./x"});
  StackStatistics statistics;
  std::map<pid_t, RecordedView> views;
  RecordingDiagnosis diagnosis;

  EndedCase() {
    samples.events.resize(1);
    samples.events[0].sample_type = kStackUser;
    samples.facts.arch = "x86_64";
    diagnosis.total.samples = 1000;
    diagnosis.processes.resize(1);
    diagnosis.processes[0].counts.pid = 42;
    samples.processes[42] = {};
    views[42] = {};
  }

  EndedCase& ends(EndedStacks stacks) {
    diagnosis.processes[0].ended.push_back(std::move(stacks));
    return *this;
  }
  std::vector<DoctorFinding> findings() {
    diagnosis.findings.clear();
    const RecordingContext context{samples, options, command, "a b.data"};
    const RecordingCase facts{context, statistics, views};
    RecordingAdvice advice(*command, diagnosis);
    add_end_findings(facts, diagnosis, advice);
    advice.finish();
    std::vector<DoctorFinding> found;
    for (const RecordingFinding& one : diagnosis.findings) found.push_back(one.finding);
    return found;
  }
};

}  // namespace

TEST_CASE("a file without unwinding information is reported with its share of stacks", "[doctor]") {
  const auto found =
      EndedCase().ends({"/opt/x", "work", FrameKind::native, 998, 1, 999}).findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == "early-ends");
  CHECK(found[0].severity == Severity::warning);
  CHECK(
      found[0].message.starts_with("999 of 1000 stacks (99 %) end in /opt/x, and each of these "
                                   "stacks has only one frame, which has no "
                                   "unwinding information"));
  CHECK(found[0].fix == "perfmap stacks --scan 'a b.data'");
}

TEST_CASE("stacks that are not unwound: what the kernel follows depends on the machine",
          "[doctor]") {
  EndedCase ended;
  ended.diagnosis.processes[0].counts.not_unwound = 1000;
  const auto message = [&](const std::string& arch) {
    ended.samples.facts.arch = arch;
    return ended.findings().at(0).message;
  };
  CHECK(message("s390x").ends_with("(-g) of programs that were compiled with -mbackchain"));
  CHECK(message("ppc64le").ends_with("(-g), which always have a back chain"));
  CHECK(message("loongarch64").ends_with("with -fno-omit-frame-pointer"));
  CHECK(message("vax").ends_with("(vax); the kernel may walk them (-g)"));
  CHECK(message("").ends_with("(unknown); the kernel may walk them (-g)"));
}

TEST_CASE("proposed commands repeat the options with which the recording is read", "[doctor]") {
  EndedCase ended;
  ended.options.symfs = "the root";
  ended.options.map_dir = "maps";
  ended.options.any_owner = true;
  ended.ends({"/opt/x", "work", FrameKind::native, 998, 1, 999});
  CHECK(ended.findings()[0].fix ==
        "perfmap stacks --scan --symfs 'the root' --map-dir maps --any-owner 'a b.data'");
  ended.options.map_dir.clear();
  ended.options.snapshot = "snap";
  CHECK(ended.findings()[0].fix ==
        "perfmap stacks --scan --symfs 'the root' --map-dir snap --any-owner 'a b.data'");
}

TEST_CASE("early ends below 1 % of the stacks are not reported", "[doctor]") {
  CHECK(EndedCase().ends({"/opt/x", "f", FrameKind::native, 5, 4, 0}).findings().empty());
  CHECK(EndedCase().ends({"/opt/x", "f", FrameKind::native, 5, 5, 0}).findings().size() == 1);
  EndedCase many;
  for (int i = 0; i < 20; ++i) {
    many.ends({"/opt/" + std::to_string(i), "f", FrameKind::native, 5, 0, 0});
  }
  REQUIRE(many.findings().size() == 1);
  CHECK(many.findings()[0].message.starts_with("100 of 1000 stacks (10 %) end early in other"));
}

TEST_CASE("--scan is not proposed for a process whose mappings are not recorded", "[doctor]") {
  EndedCase unseen;
  unseen.ends({"", "", FrameKind::unknown, 116, 0, 0});
  REQUIRE(unseen.findings().size() == 1);
  CHECK(unseen.findings()[0].fix == "perfmap stacks --scan 'a b.data'");
  unseen.samples.processes[42].began_unseen = true;
  REQUIRE(unseen.findings().size() == 1);
  CHECK(
      unseen.findings()[0].message.starts_with("116 of 1000 stacks (11 %) end in processes that "
                                               "started together with perf"));
  CHECK(unseen.findings()[0].fix.empty());
}

TEST_CASE("the advice depends on why stacks end in a file", "[doctor]") {
  const auto only = [](EndedStacks stacks) {
    const auto found = EndedCase().ends(std::move(stacks)).findings();
    REQUIRE(found.size() == 1);
    return found[0];
  };
  const DoctorFinding fiber = only({"/x", "make_fcontext", FrameKind::native, 994, 0, 0});
  CHECK(fiber.id == "fibers");
  CHECK(fiber.severity == Severity::info);
  CHECK(fiber.fix.empty());
  CHECK(fiber.message.ends_with(". No action is needed"));
  for (const char* const name : {"jump_fcontext", "ontop_fcontext"}) {
    const DoctorFinding left =
        only({"/usr/lib/libboost_context.so.1.74.0", name, FrameKind::native, 994, 0, 0});
    CHECK(left.id == "early-ends");
    CHECK(left.message.find("switches fibers (Boost.Context)") != std::string::npos);
    CHECK(left.fix == "perfmap stacks --scan 'a b.data'");
  }
  CHECK(only({"/usr/lib/libboost_context.so.1.74.0", "", FrameKind::native, 9, 9, 0}).id ==
        "fibers");
  const DoctorFinding haskell = only({"/x", "Main_work_info", FrameKind::native, 994, 0, 0});
  CHECK(haskell.message.find("no option of perf or ghc shows its callers. ") != std::string::npos);
  CHECK(
      haskell.message.ends_with("compile with 'ghc -prof -fprof-auto', and run the program with "
                                "'+RTS -p'"));
  CHECK(haskell.fix.empty());
  CHECK(only({"/lib/ld-musl-x86_64.so.1", "memcpy", FrameKind::native, 994, 0, 0})
            .message.find("musl-dbg") != std::string::npos);
  CHECK(only({"/x", "f", FrameKind::native, 1, 994, 0}).message.find("leads out of the stack") !=
        std::string::npos);
}

TEST_CASE("missing files are copied from the host of the recording", "[doctor]") {
  EndedCase ended;
  ended.ends({"/opt/app x", "", FrameKind::unknown, 900, 0, 0});
  REQUIRE(ended.findings().size() == 1);
  CHECK(ended.findings()[0].id == "missing-files");
  CHECK(ended.findings()[0].fix == "perf record --call-graph dwarf -- ./x");
  ended.samples.facts.hostname = "far.away.invalid";
  Region region;
  region.range = {0x1000, 0x1000};
  region.file = std::make_shared<MappedFile>(classify_mapping("/opt/app x"));
  region.access.execute = true;
  ended.samples.processes[42].memory = AddressSpace::of({&region, 1});
  CHECK(ended.findings()[0].fix ==
        "mkdir -p 'a b.data.symfs' && ssh far.away.invalid tar -C / --ignore-failed-read -chf - "
        "''\\''opt/app x'\\''' "
        "| tar -C 'a b.data.symfs' -xf - && perfmap doctor --symfs 'a b.data.symfs' 'a b.data'");
}

TEST_CASE("samples of a machine that cannot be unwound are reported once", "[doctor]") {
  EndedCase ended;
  ended.diagnosis.processes[0].counts.not_unwound = 1000;
  ended.samples.facts.arch = "s390x";
  ended.ends({"/opt/x", "work", FrameKind::native, 1000, 0, 1000});
  const auto found = ended.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == "not-unwound");
  CHECK(found[0].message.find("of this machine (s390x)") != std::string::npos);
  CHECK(found[0].fix == "perf record -g -- ./x");
}

TEST_CASE("if all stacks end early, and no cause is found, that is reported", "[doctor]") {
  constexpr auto kNoInfo = static_cast<std::size_t>(StackEnd::no_info);
  EndedCase ended;
  ended.diagnosis.total.ends[kNoInfo] = 1000;
  const auto found = ended.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == "early-ends");
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].message.starts_with("1000 of 1000 stacks (100 %) end early"));
  ended.diagnosis.total.ends[kNoInfo] = 999;
  CHECK(ended.findings().empty());
  // Another finding says why.
  ended.diagnosis.total.ends[kNoInfo] = 1000;
  ended.ends({"/opt/x", "work", FrameKind::native, 1000, 0, 1000});
  CHECK(ended.findings().size() == 1);
  // Of code of runtimes other findings tell what is wrong, if anything is.
  EndedCase jit;
  jit.diagnosis.total.ends[kNoInfo] = 1000;
  jit.ends({"//anon", "f", FrameKind::jit, 1000, 0, 0});
  CHECK(jit.findings().empty());
}

TEST_CASE("copied stacks of Erlang that lose their callers need frame pointers", "[doctor]") {
  EndedCase ended;
  ended.views[42].found.runtime = Runtime::erlang;
  ended.diagnosis.processes[0].unnamed_jit = 7;
  ended.ends({"//anon", "", FrameKind::jit, 600, 0, 0});
  ended.ends({"/usr/lib/erlang/beam.smp", "erts_garbage_collect", FrameKind::native, 100, 0, 0});
  auto found = ended.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == "own-stack");
  CHECK(found[0].message.starts_with("700 of 1000 stacks"));
  CHECK(found[0].fix == "ERL_FLAGS='+JPperf true' perf record -g -k mono -- ./x");
  // With names it has frame pointers: only calls of C functions lose them.
  ended.diagnosis.processes[0].unnamed_jit = 0;
  ended.views[42].view.arguments = {"erl", "+JPperf", "true"};
  found = ended.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].message.starts_with("100 of 1000 stacks"));
  CHECK(found[0].fix == "perf record -g -- ./x");
}

TEST_CASE("stacks that end in Erlang's C functions are reported without a command", "[doctor]") {
  EndedCase ended;
  ended.views[42].found.runtime = Runtime::erlang;
  ended.views[42].view.arguments = {"erl", "+JPperf", "true"};
  ended.ends({"/tmp/jit-42.dump", "erts_beamasm:normal_exit/0", FrameKind::jit, 900, 0, 0, 0});
  CHECK(ended.findings().empty());
  ended.diagnosis.processes[0].ended[0].other_stack = 300;
  const auto found = ended.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == "own-stack");
  CHECK(found[0].severity == Severity::info);
  CHECK(found[0].message.starts_with("300 of 1000 stacks (30 %) end where Erlang calls"));
  CHECK(found[0].fix.empty());
}

TEST_CASE("stacks that end on another stack are reported, with the kernel's walk as the fix",
          "[doctor]") {
  EndedStacks go{"/opt/x", "runtime.systemstack.abi0", FrameKind::native};
  go.other_stack = 300;
  EndedStacks handler{"/lib/libc.so.6", "nanosleep", FrameKind::native};
  handler.other_stack = 600;
  EndedCase ended;
  ended.ends(handler).ends(go).ends(go);
  const auto found = ended.findings();
  REQUIRE(found.size() == 2);
  for (const DoctorFinding& one : found) {
    CHECK(one.id == "other-stack");
    CHECK(one.severity == Severity::warning);
    CHECK(one.fix == "perf record -g -- ./x");
    CHECK(one.message.starts_with("600 of 1000 stacks (60 %) end "));
  }
  CHECK(found[0].message.find("where Go's runtime switched") != std::string::npos);
  CHECK(found[1].message.find("that a signal handler with its own stack") != std::string::npos);
  EndedCase few;
  go.other_stack = 9;
  few.ends(go);
  CHECK(few.findings().empty());
}

TEST_CASE("stacks that end on another stack, or where fibers begin, are counted", "[doctor]") {
  FrameTable table;
  const auto place = [&](std::string_view name, FrameKind kind, std::string_view module) {
    FrameFunction function;
    function.module = module;
    function.name = name;
    function.kind = kind;
    return table.add(FramePlace{.function = table.add(function)});
  };
  const std::vector<RecordedEvent> events;
  StackCounter counter(table, events);
  const auto take = [&](std::uint32_t one, StackEnd end) {
    const std::vector<StackFrame> frames = {{.place = one}};
    counter.take({.pid = 42, .event = 0, .end = end, .frames = frames});
  };
  const std::uint32_t bif = place("global::call_bif_shared", FrameKind::jit, "/tmp/jit-42.dump");
  const std::uint32_t fiber = place("make_fcontext", FrameKind::native, "/opt/x");
  take(bif, StackEnd::other_stack);
  take(bif, StackEnd::other_stack);
  take(bif, StackEnd::other_stack);
  take(bif, StackEnd::no_info);
  take(fiber, StackEnd::root);
  take(fiber, StackEnd::root);
  take(place("_start", FrameKind::native, "/opt/y"), StackEnd::root);
  take(place("", FrameKind::native, "/usr/lib/libboost_context.so.1.74.0"), StackEnd::root);
  const auto ended = counter.ended(42);
  REQUIRE(ended.size() == 3);
  CHECK(ended[0].other_stack == 3);
  CHECK(ended[0].no_info == 1);
  CHECK(ended[0].count() == 1);
  CHECK(ended[1].module == "/opt/x");
  CHECK(ended[1].function == "make_fcontext");
  CHECK(ended[1].fiber_roots == 2);
  CHECK(ended[1].count() == 2);
  CHECK(ended[2].fiber_roots == 1);
}

TEST_CASE("ends of stacks are counted by file, with the most frequent function", "[doctor]") {
  FrameTable table;
  const auto place = [&](std::string_view module, std::string_view name, FrameKind kind) {
    FrameFunction function;
    function.module = module;
    function.name = name;
    function.kind = kind;
    return table.add(FramePlace{.function = table.add(function)});
  };
  const std::uint32_t f = place("/x", "f", FrameKind::native);
  const std::uint32_t g = place("/x", "g", FrameKind::native);
  const std::uint32_t kernel = place("[kernel]", "k", FrameKind::kernel);
  const std::uint32_t jit = place("//anon", "", FrameKind::jit);
  std::vector<RecordedEvent> events(2);
  events[0].sample_type = kStackUser;
  StackCounter counter(table, events);
  const auto take = [&](StackEnd end, const std::vector<std::uint32_t>& places,
                        std::uint32_t event = 0) {
    std::vector<StackFrame> frames;
    for (const std::uint32_t one : places) frames.push_back({.place = one});
    counter.take({.pid = 42, .event = event, .end = end, .frames = frames});
  };
  take(StackEnd::no_info, {kernel, f});
  take(StackEnd::no_info, {f, g});
  take(StackEnd::bad_memory, {f, g});
  take(StackEnd::root, {f, g});
  take(StackEnd::no_info, {f, jit});
  take(StackEnd::callchain, {jit});
  take(StackEnd::callchain, {jit}, 1);  // has no copied stack that could end
  const auto ended = counter.ended(42);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].module == "/x");
  CHECK(ended[0].function == "g");
  CHECK(ended[0].no_info == 2);
  CHECK(ended[0].bad_memory == 1);
  CHECK(ended[0].alone == 1);
  CHECK(ended[1].kind == FrameKind::jit);
  CHECK(counter.processes[42].jit_frames == 3);
  CHECK(counter.processes[42].unnamed_jit == 3);
  CHECK(counter.processes[42].ends_in_jit == 2);
  CHECK(counter.ended(41).empty());
}

}  // namespace perfmap::test::end_findings_test
