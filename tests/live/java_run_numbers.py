# SPDX-License-Identifier: MIT
"""Runs of one Java program with lambdas, proxies, method handles and reflection have the same functions, though their
names have addresses and counters that differ in each: java_run_numbers.py PERFMAP

Exit status 77: perf, java or javac is not installed, or perf may not record.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from named_frames import run, skip
from perf_record import PERF_RECORD

perfmap = os.path.abspath(sys.argv[1])
# Each maker needs classes that the JVM generates; with the argument "reversed", they get other numbers.
PROGRAM = """
import java.lang.invoke.*;
import java.lang.reflect.*;
import java.util.*;
import java.util.function.*;

public class Runs {
  interface Shape { long area(long n); }
  interface Name { String name(long n); }

  static long spin(long n) {
    long s = n;
    for (int i = 0; i < 30; i++) s = s * 31 + i;
    return s;
  }
  public static long first(long n) { return spin(n); }
  public static long second(long n) { return spin(n) + 1; }
  public static long handled(long n) { return spin(n); }

  static LongUnaryOperator reflected(String name) {
    try {
      Method method = Runs.class.getMethod(name, long.class);
      return n -> {
        try { return (Long) method.invoke(null, n); } catch (ReflectiveOperationException e) { throw new Error(e); }
      };
    } catch (NoSuchMethodException e) { throw new Error(e); }
  }
  static LongUnaryOperator handle() {
    try {
      MethodHandle found = MethodHandles.lookup().findStatic(Runs.class, "handled", MethodType.methodType(long.class, long.class));
      MethodHandle dropped = MethodHandles.dropArguments(MethodHandles.insertArguments(found, 0, 7L), 0, long.class);
      return n -> { try { return (long) dropped.invokeExact(n); } catch (Throwable e) { throw new Error(e); } };
    } catch (ReflectiveOperationException e) { throw new Error(e); }
  }
  static <T> T proxy(Class<T> type) {
    return type.cast(Proxy.newProxyInstance(Runs.class.getClassLoader(), new Class<?>[] {type},
        (proxy, method, arguments) -> type == Shape.class ? (Object) spin((Long) arguments[0]) : "name" + spin((Long) arguments[0])));
  }

  static List<Supplier<LongUnaryOperator>> makers() {
    return new ArrayList<>(List.of(
        () -> { long k = System.nanoTime() & 1; return n -> spin(n + k); },
        () -> { LongUnaryOperator inner = n -> spin(n ^ 5); return n -> inner.applyAsLong(n) + 1; },
        () -> Runs::handled,
        () -> { Name name = n -> "n" + n + ":" + (n * 3) + 'c'; return n -> name.name(n).length(); },
        () -> { Shape shape = proxy(Shape.class); return shape::area; },
        () -> { Name name = proxy(Name.class); return n -> name.name(n).length(); },
        () -> reflected("first"),
        () -> reflected("second"),
        () -> handle()));
  }

  public static void main(String[] words) {
    List<Supplier<LongUnaryOperator>> makers = makers();
    if (words.length > 1) Collections.reverse(makers);
    List<LongUnaryOperator> all = new ArrayList<>();
    for (Supplier<LongUnaryOperator> maker : makers) {
      LongUnaryOperator made = maker.get();
      for (long n = 0; n < 100; n++) made.applyAsLong(n);
      all.add(made);
    }
    long x = 0;
    for (long i = 0; i < Long.parseLong(words[0]); i++) for (LongUnaryOperator one : all) x += one.applyAsLong(i);
    System.out.println(x != 1);
  }
}
"""
# Without inlining, each of the generated functions has code of its own.
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:-Inline", "-XX:+UnlockDiagnosticVMOptions", "-cp", "."]
GENERATED = re.compile(r"\$\$Lambda|LambdaForm|\$Proxy|Generated\w+Accessor|0x[0-9a-f]{4}")
KINDS = (r"Runs\$\$Lambda", r"LambdaForm\$\w+", r"\$Proxy\d", r"GeneratedMethodAccessor\d")


def record(name, *command):
    run(perfmap, "record", "-q", "-F", "1999", "--call-graph", "fp", "-o", name, "--", *command)
    map, = pathlib.Path(name).glob("perf-*.map")
    return map


def generated(map):
    return {line.split(" ", 2)[2] for line in map.read_text(errors="replace").splitlines() if GENERATED.search(line)}


for tool in ("perf", "java", "javac"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    try:
        run(*PERF_RECORD, "-o", "probe.data", "true")
    except AssertionError:
        skip("perf may not record here")
    pathlib.Path("Runs.java").write_text(PROGRAM)
    run("javac", "Runs.java")
    maps = {"old": record("old", *JAVA, "Runs", "150000"),
            "equal": record("equal", *JAVA, "Runs", "150000"),
            # Also moves the archive of the JDK's own classes, which has generated ones.
            "moved": record("moved", *JAVA, "-XX:ArchiveRelocationMode=1", "Runs", "150000", "reversed")}
    for name, map in maps.items():
        for kind in KINDS:
            assert any(re.search(kind, one) for one in generated(map)), (name, kind)
    for name in ("equal", "moved"):
        assert generated(maps["old"]) != generated(maps[name]), f"{name}: the names are the same in both runs"

        # All code that was there at the end. What is compiled depends a little on time, so functions count, not versions.
        made = subprocess.run([perfmap, "diff", maps["old"], maps[name], "--format", "json"], capture_output=True, text=True)
        assert made.returncode == 1, made  # they differ
        changes = json.loads(made.stdout)["changes"]
        seen = collections.defaultdict(set)
        for one in changes:
            seen[one["name"]].add(one["change"])
        lost = [one for one, kinds in seen.items() if kinds == {"vanished"} or kinds == {"appeared"}]
        assert not [one for one in lost if "Runs" in one or re.search(r"\$Proxy|Accessor", one)], (name, lost)

        # Functions with samples: few samples are no change, whatever their names are.
        compared = json.loads(run(perfmap, "report", name, "--baseline", "old", "--format", "json", "--normalize", "none"))
        assert compared["schema"].startswith("perfmap.report-comparison"), compared.keys()
        wrong = [one for one in compared["functions"]
                 if one["change"] in ("appeared", "vanished") and GENERATED.search(one["name"])]
        assert not wrong, (name, wrong)
        print(f"{name}: {len(generated(maps['old']) ^ generated(maps[name]))} names differ, none of them in the comparison")
