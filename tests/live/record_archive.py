# SPDX-License-Identifier: MIT
"""Archives of recordings, and recordings as sources: record_archive.py PERFMAP

Exit status 77: perf cannot record.
"""
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import zstd_archive  # noqa: E402
from waiting import HANG, until  # noqa: E402

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
# A shell that names its own code, as a JIT would.
PROGRAM = """echo "$1 10 first" > ${PERFMAP_TMPDIR}/perf-$$.map
i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"""


def run(*words, status=0, **environment):
    """Output and messages of `perfmap WORDS`, which leaves no temporary directory."""
    done = subprocess.run([PERFMAP, *words], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    assert not os.listdir("unpacked"), (words, os.listdir("unpacked"))
    return done.stdout, done.stderr


def record(*words, **environment):
    return run("record", *words, "--", "sh", "-c", PROGRAM, "sh", "7f0000001000",
               PERFMAP_TMPDIR=os.path.realpath("maps"), **environment)


def archives_are_written():
    _, messages = record("-o", "run1", "--archive")
    assert "perfmap report run1.tar.zst" in messages and not os.path.exists("run1"), messages
    assert os.stat("run1.tar.zst").st_mode & 0o777 == 0o600
    with zstd_archive.opened("run1.tar.zst") as archive:
        archive.extractall(".")
    if shutil.which("zstd"):  # which tar runs
        os.mkdir("by-tar")
        subprocess.run(["tar", "--zstd", "-xf", "run1.tar.zst", "-C", "by-tar"], check=True)
        subprocess.run(["diff", "-r", "by-tar/run1", "run1"], check=True)
    else:
        print("skipped in part: there is no zstd for tar")
    assert {"perf.data", "recording.json"} < set(os.listdir("run1")), os.listdir("run1")
    # The suffix of -o chooses, too; nothing is overwritten.
    record("-o", "other.tar.zst")
    assert os.path.exists("other.tar.zst") and not os.path.exists("other")
    before = pathlib.Path("other.tar.zst").read_bytes()
    refused = run("record", "-o", "other.tar.zst", "--", "true", status=2)[1]
    assert refused == "perfmap: error: cannot create other.tar.zst: it exists\n", refused
    assert pathlib.Path("other.tar.zst").read_bytes() == before


def every_command_takes_them():
    """A directory and an archive of it have the same answers, but for their names."""
    recordings = ["report", "stacks", "stacks --stats", "doctor", "annotate %s main --source"]
    sources = ["lint", "info", "info --format json", "merge", "convert --to perf-map", "to-json", "tidy", "resolve 7f0000001000",
               "diff %s " + str(next(pathlib.Path("run1").glob("*.map"))), "lint --recording %s"]
    for command in recordings + sources:
        answers = []
        for name in ("run1", "run1.tar.zst", "plain.tar", "zipped.tar.gz"):
            words = (command.replace("%s", name) if "%s" in command else f"{command} {name}").split()
            words += [name] if "--recording" in command else []
            done = subprocess.run([PERFMAP, *words], capture_output=True, text=True)
            assert not os.listdir("unpacked"), (words, os.listdir("unpacked"))
            both = f"{done.returncode}\n{done.stdout}{done.stderr}"
            assert "unpacked" not in both, both
            both = re.sub(r"-o \S+/perf\.data", "-o …", both)  # the command line of perf
            answers.append(both.replace("run1/perf.data", "run1").replace("--map-dir run1 ", "").replace(name, "NAME"))
        assert answers[1:] == answers[:1] * 3, (command, answers)
        expected = "1\n" if command.startswith("annotate") else ("0\n", "1\n")
        assert command.startswith("annotate") or answers[0].startswith(expected), (command, answers[0])
    compared = run("report", "run1", "--baseline", "run1.tar.zst")[0]
    assert "+0.00%" in compared, compared
    run("inject", "run1.tar.zst", "-o", "injected.data")
    assert run("inject", "run1.tar.zst", "-o", "run1.tar.zst", status=2)[1] == \
        "perfmap: error: cannot write to run1.tar.zst: it is the input\n"


def others_refuse_them():
    for name, what in (("run1", "a recording directory, "), ("run1.tar.zst", "an archive, ")):
        assert f"{name} is {what}not a PyPy log" in run("pypylog", name, status=2)[1]
        assert f"'{name}' is a recording, not a process ID" in run("watch", name, status=2)[1]
        assert f"'{name}' is a recording, not a process ID" in run("write", "--to-pid", name, status=2)[1]
    for words in ("tidy run1.tar.zst --in-place", "lint run1.tar.zst --fix"):
        before = pathlib.Path("run1.tar.zst").read_bytes()
        done = subprocess.run([PERFMAP, *words.split()], capture_output=True, text=True)
        assert pathlib.Path("run1.tar.zst").read_bytes() == before and not os.listdir("unpacked"), done


def nothing_remains_after_a_signal():
    os.mkfifo("pages")  # the output blocks until there is a reader
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child = subprocess.Popen([PERFMAP, "stacks", "run1.tar.zst", "-o", "pages"], stderr=subprocess.PIPE)
        until(lambda: os.listdir("unpacked") and os.path.exists(
            f"unpacked/{os.listdir('unpacked')[0]}/recording.json"))
        directory = pathlib.Path("unpacked", os.listdir("unpacked")[0])
        assert directory.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in directory.iterdir()} == {0o600}
        child.send_signal(number)
        child.communicate(timeout=HANG)
        assert child.returncode == -number and not os.listdir("unpacked"), (child.returncode, os.listdir("unpacked"))
    # A reader that closes the pipe: SIGPIPE.
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PERFMAP, "stacks", "run1.tar.zst"], stdout=writing,
                          preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    os.close(writing)
    assert done.returncode == -signal.SIGPIPE and not os.listdir("unpacked"), done


def hostile_archives_are_refused():
    def archive(name, **facts):
        with tarfile.open("bad.tar", "w") as tar:
            for file, data in (("perf.data", b"x"), (name, b"")):
                info = tarfile.TarInfo(file)
                info.size = len(data)
                for key, value in facts.items() if file == name else ():
                    setattr(info, key, value)
                tar.addfile(info, io.BytesIO(data))

    archive("perf-1.map", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    for words in (("report", "bad.tar"), ("lint", "bad.tar"), ("resolve", "0", "bad.tar"), ("doctor", "bad.tar")):
        assert run(*words, status=2)[1] == \
            "perfmap: error: cannot unpack bad.tar: 'perf-1.map' is a symbolic link\n", words
    # Others are used.
    pathlib.Path("good.map").write_text("1000 10 good\n")
    answer, messages = run("resolve", "1000", "good.map", "bad.tar", status=2)
    assert "good" in answer and messages.count("error") == 1, (answer, messages)
    assert "good.map" in run("lint", "bad.tar", "good.map", "--select", "PM109", status=2)[0]
    archive("../perf-1.map")
    assert "leads out of the directory" in run("report", "bad.tar", status=2)[1]
    pathlib.Path("torn.tar.zst").write_bytes(pathlib.Path("run1.tar.zst").read_bytes()[:-10])
    assert run("report", "torn.tar.zst", status=2)[1] == "perfmap: error: cannot unpack torn.tar.zst: it is truncated (copy it again)\n"
    nowhere = os.path.realpath("nowhere")
    assert run("report", "run1.tar.zst", status=2, TMPDIR=nowhere)[1] == \
        "perfmap: error: cannot unpack run1.tar.zst: cannot create a temporary directory: No such file or directory " \
        f"(in {nowhere}; set TMPDIR to use another directory)\n"


def a_full_directory_is_reported():
    """A file is larger than the file system of TMPDIR."""
    script = 'mount -t tmpfs -o size=16k none unpacked && "$@"; status=$?; ls -A unpacked; exit $status'
    words = ["unshare", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        print("skipped in part: only root can mount")
        return
    done = subprocess.run([*words, PERFMAP, "report", "run1.tar.zst"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert re.fullmatch(r"perfmap: error: cannot unpack run1\.tar\.zst: '\S+' has \d+ bytes, and \d+ are free "
                        r"\(in \S+/unpacked; set TMPDIR to use another directory\)\n", done.stderr), done.stderr


def a_process_is_selected():
    """Of a recording of several processes."""
    shutil.copytree("run1", "two")
    pathlib.Path("two/perf-2000001.map").write_text("7f0000001000 10 second\n")
    own = int(re.search(r"perf-(\d+)\.map", " ".join(os.listdir("run1")))[1])
    zstd_archive.write("two.tar.zst", "two")
    if shutil.which("zstd"):
        subprocess.run(["tar", "--zstd", "-cf", "two-by-tar.tar.zst", "two"], check=True)
        assert run("info", "two-by-tar.tar.zst")[0] == run("info", "two.tar.zst")[0].replace("two.tar.zst", "two-by-tar.tar.zst")
    for name in ("two", "two.tar.zst"):
        for words in (("resolve", "7f0000001000", name), ("merge", name), ("tidy", name)):
            assert run(*words, status=2)[1] == \
                f"perfmap: error: {name} has names of several processes: {own}, 2000001 (-p PID selects one)\n"
        assert "first" in run("resolve", "7f0000001000", name, "-p", str(own))[0]
        assert "second" in run("resolve", "7f0000001000", name, "-p", "2000001")[0]
        assert run("tidy", name, "-p", "2000001")[0] == "7f0000001000 10 second\n"
        assert "has no perf map or jitdump of process 7, but of" in run("merge", name, "-p", "7", status=2)[1]
        assert run("info", name)[0].count("source ") == 2
        assert run("info", name, "-p", str(own))[0].count("source ") == 1


def pages_are_opened():
    pathlib.Path("browser").write_text("#!/bin/sh\necho \"$1\" >> opened\n")
    os.chmod("browser", 0o755)
    browser = os.path.realpath("browser")
    where = {"BROWSER": f"false:{browser}", "DISPLAY": ":99"}
    messages = record("-o", "shown", "--open", **where)[1]
    page = os.path.realpath("shown/flame.html")
    assert f"the flame graph is {page}\n" in messages, messages
    assert pathlib.Path("opened").read_text() == page + "\n"
    assert pathlib.Path(page).read_text().startswith("<!DOCTYPE html>")
    record("-o", "page.tar.zst", "--open", **(where | {"BROWSER": f"{browser} %s"}))
    assert pathlib.Path("opened").read_text().splitlines()[1] == os.path.realpath("page.html")
    with zstd_archive.opened("page.tar.zst") as archive:
        assert not [name for name in archive.getnames() if "flame.html" in name], archive.getnames()
    missing = record("-o", "failed", "--open", **(where | {"BROWSER": "false"}))[1]
    assert "it was not opened: no browser could be run" in missing, missing
    nowhere = record("-o", "headless", "--open", BROWSER=browser if os.geteuid() == 0 else "", DISPLAY="",
                     WAYLAND_DISPLAY="")[1]
    assert "it was not opened: there is no display" in nowhere, nowhere
    assert len(pathlib.Path("opened").read_text().splitlines()) == 2


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for name in ("unpacked", "maps"):
            os.mkdir(name)
        os.environ["TMPDIR"] = os.path.realpath("unpacked")
        probe = subprocess.run([PERFMAP, "record", "-o", "probe", "--", "true"], capture_output=True, text=True)
        if probe.returncode != 0:
            print("skipped: perf cannot record:", probe.stderr.strip())
            return 77
        if zstd_archive.library() is None:
            print("skipped: there is no libzstd.so.1")
            return 77
        archives_are_written()
        subprocess.run("tar -cf plain.tar -C run1 . && tar -czf zipped.tar.gz run1", shell=True, check=True)
        every_command_takes_them()
        others_refuse_them()
        nothing_remains_after_a_signal()
        hostile_archives_are_refused()
        a_full_directory_is_reported()
        a_process_is_selected()
        pages_are_opened()
    return 0


sys.exit(main())
