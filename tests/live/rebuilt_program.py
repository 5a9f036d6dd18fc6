# SPDX-License-Identifier: MIT
"""A recording keeps the names of a program that is built again, stripped or removed: rebuilt_program.py PERFMAP

Exit status 77: gcc is not installed, or perf cannot record.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.json_schema import check, load  # noqa: E402
from support.trying import require  # noqa: E402

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
PROGRAM = r"""
#define OWN __attribute__((noinline, noipa))
static volatile unsigned long sink;
OWN void parse(unsigned long n) { for (unsigned long i = 0; i < n; ++i) sink = sink * 31 + i; }
OWN void render(unsigned long n) { for (unsigned long i = 0; i < n; ++i) sink = sink * 7 + i * i; }
MORE
int main(void) {
  for (unsigned i = 0; i < 30000; ++i) { parse(2000); render(RENDER); }
  return sink == 1;
}
"""


def run(*words, status=0, **how):
    done = subprocess.run([PERFMAP, *map(str, words)], capture_output=True, text=True, **how)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done


def build(render, *flags):
    """Each build has its functions elsewhere."""
    pathlib.Path("bench.c").write_text(PROGRAM.replace("MORE", f"int unused{render}[4] = {{1}};\nOWN int moved(int x) "
                                                       "{ return x; }" * (render > 2000)))
    subprocess.run(["gcc", "-O1", "-g", f"-DRENDER={render}", *flags, "bench.c", "-o", "bench"], check=True)


def record(*words):
    return run("record", *words, "-F", "999", "--", "./bench").stderr


def changes(new, old):
    found = json.loads(run("report", new, "--baseline", old, "--format", "json").stdout)
    return {one["name"]: one["change"] for one in found["functions"]}


def shares(recording, *options):
    report = json.loads(run("report", recording, "--format", "json", *options).stdout)
    return {row["name"]: row["self_share"] for row in report["events"][0]["rows"]}


def names_outlive_the_program(*flags):
    for name in ("old", "new", "older.tar.zst"):
        shutil.rmtree(name, ignore_errors=True)
        pathlib.Path(name).unlink(missing_ok=True)
    build(2000, *flags)
    record("-o", "old")
    record("-o", "older.tar.zst")
    manifest = json.loads(pathlib.Path("old/recording.json").read_text())
    schema = load("perfmap.recording-1")
    check(manifest, schema, schema)
    program = next(one for one in manifest["modules"] if one["source"] == os.path.realpath("bench"))
    copy = pathlib.Path("old", program["path"])
    assert copy.read_bytes() == pathlib.Path("bench").read_bytes() and copy.stat().st_mode & 0o777 == 0o600
    before = shares("old", "--by", "line"), shares("older.tar.zst", "--by", "line")
    build(8000, *flags)
    record("-o", "new")
    for old in ("old", "older.tar.zst"):
        found = changes("new", old)
        assert set(found.values()) <= {"grew", "shrank"}, (flags, found)
        require(found.get("render") == "grew", (flags, found))
    for ending in (lambda: subprocess.run(["strip", "bench"], check=True), lambda: os.unlink("bench")):
        ending()
        assert (shares("old", "--by", "line"), shares("older.tar.zst", "--by", "line")) == before
    # The code is there, too.
    assert "ret" in run("annotate", "old", "parse", "--asm").stdout


def recordings_without_names_are_not_compared():
    """As those of releases that copied no files."""
    shutil.rmtree("new", ignore_errors=True)
    build(8000)
    record("-o", "new")
    path = pathlib.Path("old/recording.json")
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "modules": []}))
    done = run("report", "new", "--baseline", "old", "--fail-above", "5%", status=2)
    assert re.search(r"old/perf\.data has no names for bench, which has \d+\.\d\d% of its samples: the file was built "
                     r"again or removed after the recording", done.stderr) and not done.stdout, done
    assert "has no names for bench" in run("stacks", "new", "--baseline", "old", status=2).stderr
    path.write_text(json.dumps(manifest))
    assert "parse" in run("stacks", "new", "--baseline", "old").stdout
    build(8000, "-s")
    record("-o", "stripped")
    for new, old in (("stripped", "new"), ("new", "stripped")):
        error = run("report", new, "--baseline", old, "--fail-above", "5%", status=2).stderr
        assert re.search(r"stripped/perf\.data has no names for \d+\.\d\d% of its samples, which are in bench, "
                         r"unlike new/perf\.data: the file was stripped", error), error


def copies_are_found_without_recording_json():
    path = pathlib.Path("old/recording.json")
    manifest = path.read_bytes()
    before = shares("old", "--by", "line")
    path.unlink()
    assert shares("old", "--by", "line") == before and "parse" in before
    path.write_bytes(manifest)


def truncated_copies_are_not_used():
    build(2000)
    shutil.rmtree("new", ignore_errors=True)
    record("-o", "new")
    manifest = json.loads(pathlib.Path("new/recording.json").read_text())
    program = next(one for one in manifest["modules"] if one["source"] == os.path.realpath("bench"))
    copy = pathlib.Path("new", program["path"])
    os.truncate(copy, program["size"] - 4000)
    said = (f"cannot use {copy}, the copy of {os.path.realpath('bench')}: it is truncated: {program['size'] - 4000} of "
            f"{program['size']} bytes")
    done = run("report", "new", "--by", "line")
    assert said in done.stderr and "no debug information" not in done.stderr and "bench.c" in done.stdout, done
    for command in (("doctor", "new"), ("annotate", "new", "parse"), ("resolve", "new", "0x1000")):
        done = subprocess.run([PERFMAP, *command], capture_output=True, text=True)
        assert said in done.stderr and "stripped" not in done.stdout, done
    build(8000)
    done = run("report", "new")
    assert said in done.stderr and "its build ID differs" in done.stderr and "parse" not in done.stdout, done


def hostile_copies_are_not_used():
    build(2000)
    shutil.rmtree("new", ignore_errors=True)
    record("-o", "new")
    os.unlink("bench")
    path = pathlib.Path("new/recording.json")
    manifest = json.loads(path.read_text())
    program = next(one for one in manifest["modules"] if one["source"] == os.path.realpath("bench"))
    copy = pathlib.Path("new", program["path"])
    whole = copy.read_bytes()
    for make in (lambda: copy.write_bytes(b"no ELF file"), lambda: copy.symlink_to("/bin/true"),
                 lambda: os.mkfifo(copy), lambda: shutil.copy("/bin/true", copy), lambda: None):
        copy.unlink(missing_ok=True)
        make()
        assert "parse" not in shares("new")
    copy.unlink(missing_ok=True)
    copy.write_bytes(whole)
    assert "parse" in shares("new")
    for wrong in ("../bench", "/bin/true", ""):
        program["path"] = wrong
        path.write_text(json.dumps(manifest))
        assert '"path" is not the name of a file in the directory' in run("report", "new", status=2).stderr


def files_below_symfs_come_first():
    build(2000)
    shutil.rmtree("new", ignore_errors=True)
    record("-o", "new")
    there = pathlib.Path(os.path.realpath("tree") + os.path.realpath("bench"))
    there.parent.mkdir(parents=True)
    subprocess.run(["strip", "bench", "-o", there], check=True)
    assert "parse" not in shares("new", "--symfs", "tree")
    build(8000)
    shutil.copy("bench", there)
    assert "parse" in shares("new", "--symfs", "tree")


def files_of_others_are_not_copied():
    """Root may read all files, but copies only those that the recorded processes could read."""
    if os.geteuid() != 0:
        return
    build(2000)
    os.chown("bench", 65534, 65534)
    for mode, is_copied in ((0o711, False), (0o755, True)):
        os.chmod("bench", mode)
        shutil.rmtree("new", ignore_errors=True)
        record("-o", "new")
        manifest = json.loads(pathlib.Path("new/recording.json").read_text())
        sources = {one["source"] for one in manifest["modules"]}
        assert (os.path.realpath("bench") in sources) == is_copied, (oct(mode), sources)


def main():
    build(2000)
    if subprocess.run([PERFMAP, "record", "-o", "first", "--", "./bench"], capture_output=True).returncode != 0:
        print("perf cannot record here")
        return 77
    names_outlive_the_program()
    names_outlive_the_program("-Wl,--build-id=none")
    names_outlive_the_program("-static")
    recordings_without_names_are_not_compared()
    copies_are_found_without_recording_json()
    truncated_copies_are_not_used()
    hostile_copies_are_not_used()
    files_below_symfs_come_first()
    files_of_others_are_not_copied()
    return 0


if __name__ == "__main__":
    if not shutil.which("gcc") or not shutil.which("perf"):
        print("gcc or perf is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        sys.exit(main())
