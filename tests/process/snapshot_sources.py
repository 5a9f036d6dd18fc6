# SPDX-License-Identifier: MIT
"""Every command accepts the directory of a snapshot, or reports in one line why not:
snapshot_sources.py PERFMAP"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
WILD = pathlib.Path(__file__).resolve().parent.parent / "wild/node"


def run(*arguments, status=0, stdin=""):
    made = subprocess.run([PERFMAP, *map(str, arguments)], capture_output=True, text=True, input=stdin)
    assert made.returncode == status, (arguments, made.returncode, made.stdout[-500:], made.stderr[-500:])
    return made


def bundle(directory, pid, maps, files, namespace_pids=()):
    """Writes a snapshot as `perfmap snapshot` does, of a process that began in 1970."""
    files = {f"proc/{pid}/maps": maps, f"proc/{pid}/comm": "node\n", "proc/stat": "btime 1000\n",
             f"proc/{pid}/stat": f"{pid} (node) S 7 {pid} {pid} 0 -1 1 1 2 3 4 5 6 7 8 20 0 1 0 5 9 9 9\n",
             f"proc/{pid}/status": f"Name:\tnode\nTgid:\t{pid}\nUid:\t1\t1\t1\t1\nNStgid:\t{pid}\nNSpid:\t{pid}\n",
             **files}
    manifest = {"schema": "perfmap.snapshot/1", "pid": pid, "namespace_pids": list(namespace_pids) or [pid], "comm": "node",
                "executable": "/usr/bin/node", "uid": 1, "start": 5, "boot": "1000.000000000",
                "taken": "1795273612.000000000", "kernel": "6.1.0", "machine": "x86_64", "files": [],
                "left_out": [], "modules": []}
    for name, content in {**files, "manifest.json": json.dumps(manifest)}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            shutil.copy(content, path)
        else:
            path.write_text(content)
    (directory / "tmp").mkdir(exist_ok=True)
    return directory


def check_map(work):
    data = WILD / "perf-603.data"
    snapshot = bundle(work / "map", 603, "1000-2000 r-xp 00000000 00:00 0 \n", {"tmp/perf-603.map": WILD / "perf-603.map"})
    by_file = run("stacks", data, "--map", WILD / "perf-603.map", "--symfs", work)
    by_snapshot = run("stacks", data, "--map-dir", snapshot, "--symfs", work)
    assert by_snapshot.stdout == by_file.stdout and "JS:" in by_snapshot.stdout, by_snapshot
    assert "snapshot" not in by_snapshot.stderr, by_snapshot.stderr
    doctor = run("doctor", data, "--map-dir", snapshot, "--symfs", work, "--format", "json", status=1).stdout
    assert "lost-map" not in doctor and "unnamed-jit" not in doctor, doctor
    without = run("doctor", data, "--map-dir", work, "--symfs", work, "--format", "json", status=1).stdout
    assert "lost-map" in without, without
    # A snapshot of another process is not used.
    other = bundle(work / "other", 604, "", {"tmp/perf-604.map": WILD / "perf-603.map"})
    assert "JS:" not in run("stacks", data, "--map-dir", other, "--symfs", work).stdout
    for arguments in (["info"], ["lint", "--fail-level", "never"], ["to-json"], ["convert", "--to", "perf-map"], ["tidy"],
                      ["merge", other], ["diff", other]):
        assert run(arguments[0], snapshot, *arguments[1:]).stdout or arguments[0] == "diff", arguments
    run("copy", snapshot, "-o", work / "copied")
    assert (work / "copied").stat().st_size > 100000


def check_dump(work):
    data = WILD / "perf-683.data"
    path = "/tmp/corpus-work/out/node/jit-683.dump"
    dump = WILD / "jit-683-samples.dump"
    snapshot = bundle(work / "dump", 683, f"7f0000000000-7f0000001000 r-xp 00000000 00:01 9 {path}\n",
                      {f"proc/683/root{path}": dump})
    by_file = run("stacks", data, "--jitdump", dump, "--symfs", work)
    by_snapshot = run("stacks", data, "--map-dir", snapshot, "--symfs", work)
    assert by_snapshot.stdout == by_file.stdout and "JS:" in by_snapshot.stdout, by_snapshot
    made = run("inject", data, "-o", work / "taken.data", "--map-dir", snapshot)
    assert "functions in" in made.stderr or "function in" in made.stderr, made.stderr
    given = run("inject", data, "-o", work / "given.data", "--jitdump", dump)
    assert (work / "taken.data").stat().st_size == (work / "given.data").stat().st_size, given.stderr
    # If no file can be used, no output is written.
    other = bundle(work / "none", 999, "", {})
    refused = run("inject", data, "-o", work / "none.data", "--map-dir", other, status=2)
    assert "did not write" in refused.stderr and not (work / "none.data").exists(), refused.stderr


def check_container(work):
    """The dump's header has the pid inside the container; the snapshot has the pid outside."""
    files = {"tmp/jit-700.dump": WILD / "jit-683-samples.dump"}
    snapshot = bundle(work / "container", 700, "", files, namespace_pids=[700, 683])
    assert "JD108" not in run("lint", snapshot, "--fail-level", "never", "--format", "jsonl").stdout
    other = bundle(work / "renamed", 700, "", files, namespace_pids=[700, 5])
    assert "JD108" in run("lint", other, "--fail-level", "never", "--format", "jsonl").stdout


def check_looked_for(work):
    """The doctor looks for files only inside the snapshot."""
    mapped = "7f0000000000-7f0000001000 r-xp 00000000 00:01 9 /app/jit-801.dump\n"
    for namespace_pids in ([800], [800, 3]):
        status = {"proc/800/status": f"Name:\tnode\nTgid:\t800\nUid:\t1\t1\t1\t1\nNStgid:\t{chr(9).join(map(str, namespace_pids))}\n"}
        for maps, dump in (("", "tmp/jit-800.dump"), (mapped, "proc/800/root/app/jit-801.dump")):
            snapshot = bundle(work / f"places-{len(namespace_pids)}-{len(maps)}", 800,
                              "1000-2000 rwxp 00000000 00:00 0 \n" + maps, status, namespace_pids)
            found = json.loads(run("doctor", snapshot, "--format", "json", status=1).stdout)
            expected = [f"{snapshot}/tmp/perf-800.map", f"{snapshot}/{dump}"]
            if maps:
                expected.append(f"{snapshot}/tmp/jit-800.dump")
            assert [one["our_path"] for one in found["looked_for"]] == expected, found["looked_for"]
            assert all(one["fate"] == "missing" for one in found["looked_for"]), found["looked_for"]


def check_refusals(work):
    snapshot = work / "map"
    for arguments, why in ((["pypylog", snapshot], "is a snapshot, not a PyPy log"),
                           (["stacks", snapshot], "is a snapshot, not a recording"),
                           (["inject", snapshot, "-o", work / "x"], "is a snapshot, not a recording"),
                           (["pypylog", WILD.parent / "pypy/addr-counts.pypylog", "--perf-data", snapshot],
                            "is a snapshot, not a recording"),
                           (["watch", snapshot], "is a snapshot, not a process ID"),
                           (["snapshot", snapshot, "-o", work / "x"], "is a snapshot, not a process ID"),
                           (["gc", snapshot], "unexpected argument")):
        said = run(*arguments, status=2).stderr
        assert why in said and said.count("\n") == 1, said
    (snapshot / "manifest.json").write_text("{}")
    for arguments in (["stacks", WILD / "perf-603.data", "--map-dir", snapshot], ["doctor", snapshot],
                      ["doctor", WILD / "perf-603.data", "--map-dir", snapshot],
                      ["inject", WILD / "perf-683.data", "-o", work / "x", "--map-dir", snapshot]):
        assert "cannot use" in run(*arguments, status=2).stderr


def check_no_process():
    """Exit status 2 in every command that accepts a process."""
    gone = 4194300
    for arguments in (["resolve", "1000", "--pid", gone], ["doctor", gone], ["lint", gone], ["info", gone],
                      ["convert", gone, "--to", "json"], ["merge", gone, gone], ["diff", gone, gone],
                      ["to-json", gone], ["tidy", gone], ["copy", gone, "-o", "/dev/null"], ["watch", gone],
                      ["snapshot", gone, "-o", "/nowhere"]):
        made = run(*arguments, status=2)
        assert str(gone) in made.stderr and made.stdout == "", (arguments, made)
    assert run("resolve", "-", "--pid", gone, status=2, stdin="1000\n").stdout == ""
    # Other sources are still used.
    made = run("resolve", "18c4010", "--pid", gone, "--map", WILD / "perf-603.map", status=2)
    assert made.stdout.startswith("18c4010 Builtin:DeoptimizationEntry_Eager+0x10"), made
    assert made.stderr == f"perfmap: error: no process {gone}\n", made.stderr


with tempfile.TemporaryDirectory() as directory:
    check_map(pathlib.Path(directory))
    check_dump(pathlib.Path(directory))
    check_container(pathlib.Path(directory))
    check_looked_for(pathlib.Path(directory))
    check_refusals(pathlib.Path(directory))
    check_no_process()
