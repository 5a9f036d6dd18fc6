# SPDX-License-Identifier: MIT
"""How `perfmap record` begins and ends, and what it leaves: record_cases.py PERFMAP

Exit status 77: perf cannot record.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from pseudo_terminal import read_to_end
from recorded_programs import (PERFMAP, check_named, check_nothing_left, read_manifest, run, run_rows, skip_without_perf, stacks,
                               totals)
from trying import require, require_samples, try_again
from waiting import HANG, children_of, has_pending, proc_file, processor_time, tracer_of, until

NOBODY = 65534


def erlang_is_named(cwd):
    work = ("[lists:foldl(fun(X, A) -> A + X rem 7 end, 0, lists:seq(1, 100000)) || _ <- [1, 2, 3]], "
            "io:format(\"done true~n\"), halt().")
    done = run("record", "-o", "erl1", "--", "erl", "-noshell", "-eval", work, cwd=cwd)
    assert done.stdout == "done true\n"
    kinds = sorted(file["kind"] for file in read_manifest(f"{cwd}/erl1")["files"])
    assert kinds == ["dump", "map"], kinds
    check_named(totals("erl1", cwd, "beam.smp"))


def php_is_named(cwd):
    """Also where the configuration turns the JIT compiler off, as Debian's does."""
    pathlib.Path(cwd, "hot.php").write_text(
        "<?php function hot($n) { $s = 0; for (; $n > 0; $n = intdiv($n, 10)) $s += $n % 10; return $s; }\n"
        "for ($i = 0, $x = 0; $i < 6000000; $i++) $x += hot($i);\necho $x, PHP_EOL;\n")
    run("record", "-o", "php1", "--", "php", "hot.php", cwd=cwd)
    found = sum(count for frames, count in stacks("php1", cwd) if "hot_[j]" in frames)
    require_samples(sum(count for _, count in stacks("php1", cwd)), 20, "php")
    assert found, "php has no name"
    require_samples(found, 20, "hot of php")


def restarts_are_named(cwd):
    """For a living process without names, the message has the command line that gives them."""
    with subprocess.Popen(["node", "hot.js", "60"], cwd=cwd, stdout=subprocess.DEVNULL) as node:
        until(lambda: processor_time(node.pid) > 0.2)
        done = run("record", "-o", "live1", "-p", str(node.pid), "--duration", "1", cwd=cwd)
        node.kill()
    assert re.search(rf"process {node.pid}: .* \(start it again: node --perf-basic-prof .*hot\.js 60\)", done.stderr), done.stderr
    # perf's own process, which waits for the duration, is not a second one.
    assert run("resolve", "1000", "live1", cwd=cwd).stdout == "1000 [unknown] ([unknown])\n"


def perf_of(pid):
    """perf of a recording, when it no longer ends by a Ctrl-C of the terminal."""
    return until(lambda: next((child for child in children_of(pid) if tracer_of(child) == pid), None), "perf is traced")


def stop(pid):
    """Returns when the process is stopped: until then, it would take other signals first."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        try_again("a process ended before it was stopped")
    until(lambda: "\nState:\tT" in proc_file(pid, "status") or "\nState:\tt" in proc_file(pid, "status"))


def are_named(cwd, count):
    """Whether so many living Node.js processes of the directory have written names of their functions."""
    found = 0
    for path in pathlib.Path("/tmp").glob("perf-*.map"):
        try:
            is_here = os.readlink(f"/proc/{path.stem.removeprefix('perf-')}/cwd") == os.path.realpath(cwd)
            found += is_here and b"hot50" in path.read_bytes()
        except FileNotFoundError:
            pass
    return found >= count


def start_recording(name, command, cwd, count=1):
    """Returns when so many Node.js processes have compiled something, and perf has written samples."""
    going = subprocess.Popen([PERFMAP, "record", "-o", name, "--runtime", "node", "--", *command], cwd=cwd, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
    recording = pathlib.Path(cwd, name, "perf.data")

    def has_begun():
        assert going.poll() is None, going.communicate()
        return recording.exists() and recording.stat().st_size >= 1 << 20 and are_named(cwd, count)

    until(has_begun, name)
    return going


def ctrl_c_keeps_the_data(cwd):
    record = start_recording("int1", ["node", "hot.js", "60"], cwd)
    os.killpg(record.pid, signal.SIGINT)
    said = record.communicate(timeout=HANG)[1]
    assert record.returncode == 0 and "perfmap report int1" in said, said
    read_manifest(f"{cwd}/int1")
    require_samples(totals("int1", cwd, "node")["samples"], 20, "node")


class Terminal:
    """A recording in a terminal, which has begun when the command has written `ready`."""

    def __init__(self, cwd, *words):
        self.text = ""
        self.pid, self.leader = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execv(PERFMAP, [PERFMAP, "record", *words])
        self.shows("ready\r\n")
        self.perf = perf_of(self.pid)

    def shows(self, text, times=1):
        """Waits until the terminal shows the text."""
        def is_there():
            if select.select([self.leader], [], [], 0)[0]:
                self.text += os.read(self.leader, 65536).decode(errors="replace")
            return self.text.count(text) >= times

        until(is_there, lambda: self.text)

    def press(self, key, is_taken=True):
        """The terminal shows ^C after it has sent the signal. Returns when perfmap has taken it, or has it to take."""
        shown, number, code = {"Ctrl-C": ("^C", signal.SIGINT, b"\x03"), "Ctrl-\\": ("^\\", signal.SIGQUIT, b"\x1c")}[key]
        times = self.text.count(shown) + 1
        os.write(self.leader, code)
        self.shows(shown, times)
        until(lambda: has_pending(self.pid, number) != is_taken)

    def end(self):
        """All that it showed, and the status of perfmap."""
        self.text += read_to_end(self.leader).decode(errors="replace")
        return self.text, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def record_in_terminal(name, script, cwd):
    return Terminal(cwd, "--runtime", "none", "--propagate", "-o", name, "--", "sh", "-c", script)


FOR_EVER = "echo ready; while :; do sleep 0.1; done"


def ctrl_c_belongs_to_the_command(cwd):
    """In a terminal: one that handles Ctrl-C ends as it likes, one that ignores it goes on, and the second one ends both."""
    until_told = "until [ -e told ]; do sleep 0.1; done"
    rows = (("saves", f"trap '{until_told}; echo saved; exit 4' INT; {FOR_EVER}", ["Ctrl-C"], {4}),
            ("ignores", f"trap '' INT; echo ready; {until_told}; exit 6", ["Ctrl-C"], {6}),
            ("quit", f"trap 'echo quit; exit 5' QUIT; {FOR_EVER}", ["Ctrl-\\"], {5}),
            ("second", f"trap '' INT; {FOR_EVER}", ["Ctrl-C", "Ctrl-C"], {128 + signal.SIGTERM, 128 + signal.SIGINT}))
    going = [(row, record_in_terminal(row[0], row[1], cwd)) for row in rows]
    told = "the command has not ended 3 seconds after Ctrl-C"

    def check_end(name, statuses, terminal):
        said, status = terminal.end()
        assert status in statuses, (name, said)
        assert ("saved" in said) == (name == "saves"), said
        return said

    printed = {}
    for (name, _, keys, statuses), terminal in going:
        began = time.monotonic()
        for key in keys:
            terminal.press(key)
        if keys != ["Ctrl-C"]:
            printed[name] = check_end(name, statuses, terminal)
            assert told not in printed[name] or time.monotonic() - began > 3, printed
    for (_, _, keys, _), terminal in going:
        if keys == ["Ctrl-C"]:
            terminal.shows(told)
    pathlib.Path(cwd, "told").touch()
    for (name, _, keys, statuses), terminal in going:
        said = printed.get(name) or check_end(name, statuses, terminal)
        assert read_manifest(f"{cwd}/{name}")["exit_status"] in statuses
        assert "perf failed" not in said and "killed" not in said, said


def the_second_ctrl_c_reaches_slow_perf(cwd):
    """perf that has not yet taken the Ctrl-C of the terminal, which does not count, still ends when it is asked to."""
    terminal = record_in_terminal("slow1", f"trap '' INT; {FOR_EVER}", cwd)
    terminal.press("Ctrl-C")
    until(lambda: not has_pending(terminal.perf, signal.SIGINT))
    stop(terminal.perf)
    terminal.press("Ctrl-C")
    said, status = terminal.end()
    assert status == 128 + signal.SIGTERM, said
    assert "perf failed" not in said and "killed" not in said, said


def two_signals_at_once_are_two(cwd):
    """Both came while perfmap was busy."""
    terminal = record_in_terminal("busy1", f"trap '' INT QUIT; {FOR_EVER}", cwd)
    stop(terminal.pid)
    for key in ("Ctrl-C", "Ctrl-\\"):
        terminal.press(key, is_taken=False)
    os.kill(terminal.pid, signal.SIGCONT)
    said, status = terminal.end()
    assert status == 128 + signal.SIGTERM, said


def closed_terminals_keep_the_data(cwd):
    terminal = Terminal(cwd, "--runtime", "none", "-o", "closed1", "--", "sh", "-c", f"trap 'sleep 1; exit 8' HUP; {FOR_EVER}")
    os.close(terminal.leader)
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 0
    assert read_manifest(f"{cwd}/closed1")["exit_status"] == 8
    done = subprocess.run([PERFMAP, "doctor", "closed1"], cwd=cwd, capture_output=True, text=True)
    assert "recording closed1" in done.stdout and "did not finish" not in done.stdout, done


def ctrl_c_waits_for_children(cwd):
    """In a terminal, which signals all processes: a child that needs longer than its parent leaves no files."""
    late = ("process.on('SIGINT', () => setTimeout(() => process.exit(0), 400));"
            "setInterval(() => { let s = 0; for (let i = 0; i < 1e6; i++) s += i % 7 }, 10); console.log('ready')")
    pathlib.Path(cwd, "late.js").write_text(late)
    parent = "require('child_process').spawn('node', ['late.js'], {stdio: 'inherit'})"
    before = set(os.listdir(cwd)) | {"tty1"}
    terminal = Terminal(cwd, "-o", "tty1", "--", "node", "-e", parent)
    terminal.press("Ctrl-C")
    said, status = terminal.end()
    assert status == 0, said
    manifest = read_manifest(f"{cwd}/tty1")
    assert len(manifest["files"]) == 2, said
    check_nothing_left(cwd, before, manifest)


def ignored_signals_stay_ignored(cwd):
    """The command inherits what nohup, `trap ''` and `&` do. A hang-up of its group does not end it then."""
    def ignored(*command):
        said = subprocess.run(["sh", "-c", " ".join(command)], cwd=cwd, capture_output=True, text=True, check=True).stdout
        return int(said.split()[1], 16) & ~(1 << signal.SIGUSR2 - 1)  # which perf itself has the command ignore

    for trap in ("", "trap '' HUP;", "trap '' INT HUP QUIT;"):
        asked = "grep SigIgn /proc/self/status"
        assert ignored(trap, f"exec '{PERFMAP}' record --runtime none -o masks{len(trap)} --", asked) == ignored(trap, asked), trap
    command = f"trap '' HUP; exec '{PERFMAP}' record --runtime none -o hup -- sh -c 'echo begun; read line; echo ended'"
    with subprocess.Popen(["sh", "-c", command], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, start_new_session=True) as going:
        assert going.stdout.readline() == "begun\n"
        os.killpg(going.pid, signal.SIGHUP)
        assert going.communicate("\n")[0] == "ended\n"
    read_manifest(f"{cwd}/hup")


def statuses_are_true(cwd):
    run("record", "--runtime", "none", "-o", "s1", "--", "sh", "-c", "exit 7", cwd=cwd)
    run("record", "--runtime", "none", "-o", "s2", "--propagate", "--", "sh", "-c", "exit 7", cwd=cwd, expected=7)
    done = run("record", "-o", "quiet", "--quiet", "--", "sleep", "0", cwd=cwd)
    assert done.stderr == "", done.stderr
    done = run("record", "--runtime", "none", "-o", "s4", "sh", "-c", "kill -SEGV $$", cwd=cwd)
    assert "\nperfmap: sh ended by SIGSEGV\n" in done.stderr, done.stderr
    done = run("record", "--runtime", "none", "-o", "s5", "sh", "-c", "exit $1", "-F", "3", "--duration", cwd=cwd)
    assert "\nperfmap: sh exited with 3\n" in done.stderr, done.stderr
    assert read_manifest(f"{cwd}/s5")["command"][-3:] == ["-F", "3", "--duration"]
    done = run("record", "-o", "", "--", "true", cwd=cwd, expected=2)
    assert done.stderr == "perfmap: error: -o: the name of the directory is empty\n", done.stderr
    done = run("record", "-o", "s2", "--", "true", cwd=cwd, expected=2)
    assert done.stderr == "perfmap: error: cannot create s2: it exists and is not empty\n"
    done = run("record", "-o", "s3", "--perf", "/nowhere/perf", "--", "true", cwd=cwd, expected=2)
    assert "cannot run /nowhere/perf" in done.stderr
    done = run("record", "-o", "s3", "-e", "nosuch", "--", "true", cwd=cwd, expected=2)
    assert "perf record ended with status 129" in done.stderr, done.stderr
    done = run("record", "-o", "s3", "-p", "4194304", cwd=cwd, expected=2)
    assert done.stderr == "perfmap: error: no process 4194304\n", done.stderr
    assert not os.path.exists(f"{cwd}/s3")
    os.symlink("/", f"{cwd}/link")
    run("record", "-o", "link", "--", "true", cwd=cwd, expected=2)


def empty_recordings_have_a_reason(cwd):
    began = time.monotonic()
    # The kernel emulates no instruction of sleep, whereas any program may have a page fault or a migration.
    done = run("record", "-e", "emulation-faults", "-o", "empty1", "sleep", "0.3", cwd=cwd)
    took = time.monotonic() - began
    assert "recorded 0 samples of 1 process: empty1\n" in done.stderr and "\nnext:" not in done.stderr, done.stderr
    reason = re.search(r"no samples: the event emulation-faults did not occur, or too rarely, in (\d+\.\d) s ", done.stderr)
    assert 0.3 <= float(reason[1]) <= took + 0.05, done.stderr
    assert "'perfmap doctor empty1' explains why" in run("report", "empty1", cwd=cwd).stderr
    assert "did not occur, or too rarely: record for longer" in run("doctor", "empty1", cwd=cwd, expected=1).stdout


def zombies_are_named_so(cwd):
    zombie = subprocess.Popen(["true"])
    until(lambda: "\nState:\tZ" in proc_file(zombie.pid, "status"), "a zombie")
    done = run("record", "-o", "zombie1", "-p", str(zombie.pid), cwd=cwd, expected=2)
    assert f"process {zombie.pid} has ended: it is a zombie until process {os.getpid()} reads" in done.stderr, done.stderr
    zombie.wait()


def dumps_in_working_directories_are_removed(cwd):
    run("record", "-o", "dump1", "node", "--perf-prof", "hot.js", "0.4", cwd=cwd)
    assert "dump" in [file["kind"] for file in read_manifest(f"{cwd}/dump1")["files"]]
    assert not list(pathlib.Path(cwd).glob("jit-*.dump"))


def logs_without_a_directory_are_not_printed(cwd):
    """No file can be created in /proc."""
    for name, options in (("proc1", ()), ("proc2", ("--no-logfile-per-isolate", "--logfile=+"))):
        done = run("record", "-o", f"{cwd}/{name}", "node", *options, f"{cwd}/hot.js", "0.4", cwd="/proc")
        assert done.stdout == "done true\n" and ("-only-functions" in done.stderr) == (not options), done
        assert len(read_manifest(f"{cwd}/{name}")["files"]) == 1, done.stderr


def logs_of_scripts_are_not_printed(cwd):
    """Node.js is started in another directory, or as another user, after the script began."""
    hot = f"{cwd}/hot.js"
    commands = {"moved1": ["sh", "-c", f"cd /proc && exec node {hot} 0.4"],
                "moved2": ["sh", "-c", 'cd "$1" && exec node "$2" 0.4', "sh", "/proc", hot],
                "moved3": ["env", "-C", "/proc", "node", hot, "0.4"]}
    if os.geteuid() == 0:
        closed = pathlib.Path(cwd, "closed")
        closed.mkdir(mode=0o711)
        as_nobody = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups node {hot} 0.4"
        (closed / "start").write_text(f"#!/bin/sh\ncd {closed}\nexec {as_nobody}\n")
        os.chmod(closed / "start", 0o755)
        commands |= {"user4": as_nobody.split(), "user5": [f"{closed}/start"], "user6": ["sh", "-c", f"exec {as_nobody}"]}
    for name, command in commands.items():
        done = run("record", "-o", f"{cwd}/{name}", "--", *command, cwd=f"{cwd}/closed" if name.startswith("user") else cwd)
        assert done.stdout == "done true\n", (command, done)
        check_named(totals(name, cwd, "node"), command)
    match = "const s = 'ab1'.repeat(1e5), end = Date.now() + 500; while (Date.now() < end) s.replace(/[a-z]+([0-9])/g, '')"
    own_log = "--no-logfile-per-isolate --logfile=+"
    for name, command in {"regexp1": ["node", "-e", match], "regexp2": ["sh", "-c", f'node {own_log} -e "$0"', match],
                          "regexp3": ["sh", "-c", 'node -e "$0"', match]}.items():
        done = run("record", "-o", name, "--", *command, cwd=cwd)
        has_names = any("[a-z]+([0-9])" in ";".join(frames) for frames, _ in stacks(name, cwd))
        told = "regular expressions have no names" in done.stderr and own_log in done.stderr
        assert has_names == (not told) == (name != "regexp3"), done.stderr


def variables_of_scripts_are_one_line(cwd):
    words = ["record", "--runtime", "node,pypy", "-o", "lines1", "sh", "-c", "true"]
    told = run(*words, cwd=cwd).stderr
    assert "perfmap: set for runtimes that sh may start: NODE_OPTIONS" in told and "set NODE_OPTIONS=" not in told, told
    words[1:1] = ["--verbose"]
    words[words.index("lines1")] = "lines2"
    assert "perfmap: set NODE_OPTIONS=" in run(*words, cwd=cwd).stderr


def planted_files_stay(cwd):
    """Files that the recorded program did not write are neither copied nor removed."""
    victim = pathlib.Path(cwd, "isolate-0x1-1-v8.log")
    victim.write_text("mine")
    linked = pathlib.Path(cwd, "kept")
    linked.write_text("kept")
    script = ("ln -s kept isolate-0x1-$$-v8.log; ln kept isolate-0x2-$$-v8.log; "
              "mkdir isolate-0x3-$$-v8.log; ln -s kept ${PERFMAP_TMPDIR}/perf-$$.map; :")
    done = run("record", "-o", "p1", "--", "sh", "-c", script, cwd=cwd,
               env={"PERFMAP_TMPDIR": str(cwd)})
    assert victim.read_text() == "mine" and linked.read_text() == "kept", done.stderr
    assert len([name for name in os.listdir(cwd) if name.startswith("isolate-")]) == 4
    assert read_manifest(f"{cwd}/p1")["files"] == []


def names_of_others_are_refused(cwd):
    """A file that is older than the process, and one of another user, are not copied."""
    plant = "printf '0 7fffffffffff planted\\n' > /tmp/perf-$$.map; "
    end = "; exec node hot.js 0.4"
    done = run("record", "--runtime", "none", "-o", "old1", "--", "sh", "-c",
               plant + "touch -d 2001-01-01 /tmp/perf-$$.map" + end, cwd=cwd)
    assert read_manifest(f"{cwd}/old1")["files"] == [] and "older than the process" in done.stderr, done.stderr
    if os.geteuid() == 0:
        done = run("record", "--runtime", "none", "-o", "foreign1", "--", "sh", "-c",
                   plant + "chown nobody /tmp/perf-$$.map" + end, cwd=cwd)
        assert read_manifest(f"{cwd}/foreign1")["files"] == [], done.stderr
        assert "belongs to user" in done.stderr and "--any-owner" not in done.stderr, done.stderr
    for directory in ("old1", "foreign1"):
        for pid in re.findall(r"node (\d+) ", done.stderr):
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def signals_end_all_processes(cwd):
    """As Ctrl-C in a terminal does, also if only perfmap gets the signal: children of the command, and orphans, but no
    daemon that left the process group."""
    command = "node hot.js 60 & (node hot.js 60 &) ; setsid sleep 300 > /dev/null 2>&1 & echo $!; node hot.js 60; echo goes on"
    before = set(os.listdir(cwd)) | {"all1"}
    going = start_recording("all1", ["sh", "-c", command], cwd, count=3)
    going.send_signal(signal.SIGTERM)
    printed, told = going.communicate(timeout=HANG)
    assert going.returncode == 0, told
    daemon, = printed.split()
    os.kill(int(daemon), signal.SIGKILL)
    manifest = read_manifest(f"{cwd}/all1")
    assert len(manifest["files"]) == 3, (manifest, told)
    for file in manifest["files"]:
        assert not os.path.exists(f"/proc/{file['pid']}"), file
    check_nothing_left(cwd, before, manifest)


def repeated_signals_keep_the_names(cwd):
    for name, signals in (("twice1", (signal.SIGINT, signal.SIGINT)), ("hup1", (signal.SIGHUP,))):
        going = start_recording(name, ["node", "hot.js", "60"], cwd)
        for one in signals:
            going.send_signal(one)
            until(lambda: not has_pending(going.pid, one))
        printed = going.communicate(timeout=HANG)[1]
        assert going.returncode == 0, (name, going.returncode, printed)
        assert len(read_manifest(f"{cwd}/{name}")["files"]) == 1, (name, printed)


def handled_signals_have_a_status(cwd):
    """A command that handles a signal ends as it likes, and is not signaled twice."""
    counting = "i=0; while [ $i -lt 90 ]; do sleep 0.1; i=$((i+1)); done; exit 7"
    for name, number, handler, status, printed in (
            ("handled1", signal.SIGINT, "trap 'echo INT; exit 4' INT", 4, "INT\n"),
            ("handled2", signal.SIGTERM, "trap 'echo TERM; exit 5' TERM", 5, "TERM\n"),
            ("handled3", signal.SIGTERM, ":", 128 + signal.SIGTERM, "")):
        going = subprocess.Popen([PERFMAP, "record", "--runtime", "none", "--propagate", "-o", name, "--", "sh", "-c", f"{handler}; echo ready; {counting}"],
                                 cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert going.stdout.readline() == "ready\n"
        going.send_signal(number)
        said, told = going.communicate(timeout=HANG)
        assert (going.returncode, said) == (status, printed), (name, going.returncode, said, told)
        assert read_manifest(f"{cwd}/{name}")["exit_status"] == status


def fourth_signals_end_with_a_message(cwd):
    going = subprocess.Popen([PERFMAP, "record", "--runtime", "none", "-o", "fourth1", "--", "sh", "-c", "trap '' INT TERM; echo $$; while :; do sleep 0.1; done"],
                             cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    command = int(going.stdout.readline())
    for _ in range(4):
        going.send_signal(signal.SIGINT)
        until(lambda: not has_pending(going.pid, signal.SIGINT))
    going.wait(timeout=HANG)
    os.kill(command, signal.SIGKILL)  # it goes on, and has the pipes
    told = going.communicate(timeout=HANG)[1]
    assert going.returncode == 130 and "ended by the fourth signal, before the names were saved: fourth1 has" in told, told


def killed_perf_is_not_the_end_of_the_command(cwd):
    going = start_recording("killed1", ["node", "hot.js", "60", "enough"], cwd)
    os.kill(perf_of(going.pid), signal.SIGKILL)
    going.wait(timeout=HANG)  # before node ends, which goes on
    pathlib.Path(cwd, "enough").touch()
    printed, told = going.communicate(timeout=HANG)
    assert going.returncode == 0 and "ended by" not in told, told
    node, = re.findall(r"perf was killed by SIGKILL after \d+\.\d s, .*; node goes on as process (\d+), is not recorded", told)
    assert printed == "done true\n", printed  # it has the pipe
    read_manifest(f"{cwd}/killed1")
    # The record with the name of the process may be in the buffer of another processor, which perf had not yet written.
    rows = map(json.loads, run("stacks", "killed1", "--stats", "--format", "jsonl", cwd=cwd).stdout.splitlines())
    require_samples(sum(row["samples"] for row in rows if row["pid"] == int(node)), 5, "node until perf was killed")
    pathlib.Path(f"/tmp/perf-{node}.map").unlink()
    for log in pathlib.Path(cwd).glob(f"isolate-*-{node}-v8.log"):
        log.unlink()


def stopped_perf_ends(cwd):
    """perf that somebody has stopped is continued for its end: after a signal, and when the command has ended."""
    sleeper = subprocess.Popen(["sleep", "300"])
    rows = (("stopped1", ["--", "sleep", "300"]), ("stopped2", ["--", "sh", "-c", "until [ -e stopped ]; do sleep 0.1; done"]),
            ("stopped3", ["-p", str(sleeper.pid), "--duration", "3"]), ("stopped4", ["-p", str(sleeper.pid)]))
    for name, what in rows:
        going = subprocess.Popen([PERFMAP, "record", "--runtime", "none", "-o", name, *what], cwd=cwd,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True)
        perf = perf_of(going.pid)
        # It has executed the command, or what waits for the duration.
        until(lambda: name == "stopped4" or any(not proc_file(child, "comm").startswith("perf") for child in children_of(perf)), name)
        stop(perf)
        if name == "stopped1":
            going.send_signal(signal.SIGTERM)
        if name == "stopped2":
            pathlib.Path(cwd, "stopped").touch()
        if name == "stopped4":
            sleeper.kill()
            sleeper.wait()
        told = going.communicate(timeout=HANG)[1]
        assert going.returncode == 0 and "killed" not in told, told
        read_manifest(f"{cwd}/{name}")


def full_file_systems_are_named(cwd):
    script = 'mkdir -p "$1" && mount -t tmpfs -o size=$2k none "$1" && shift 2 && { "$@"; "$1" doctor "$4"; }'
    def record_with(directory, kib, *words):
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", directory, str(kib), PERFMAP, "record", *words,
                               "--", "node", f"{cwd}/hot.js", "60"], cwd="/", capture_output=True, text=True)
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        return print("skipped in part: no mount namespaces here")
    done = record_with(f"{cwd}/small", 3072, "-o", f"{cwd}/small/full1")
    assert re.search(r"perf failed after \d+\.\d s, because the file system of \S*/full1 is full \(\d+ bytes are free\), and ended node", done.stderr), done
    told = re.search(r"1 file with names of JIT code does not fit into the file system of \S*/full1, of which \d+ bytes are free, .*"
                     r", or free space and copy what stays: (/tmp/perf-\d+\.map)\)", done.stderr)
    assert told, done
    pathlib.Path(told[1]).unlink()
    assert "JIT frames with a name: 100" not in done.stderr, done
    # Unless perf could not write the mappings either.
    reasons = (f"the recording has no copy of {told[1]}: cannot write", "the recording has no code at their addresses")
    assert any(reason in done.stdout for reason in reasons), done
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mkdir -p "$1" && mount -t tmpfs -o size=64k none "$1" && mkdir "$1/full2" && dd if=/dev/zero of="$1/all" 2> /dev/null;'
                           'exec "$2" record -o "$1/full2" -- true', "sh", f"{cwd}/none", PERFMAP], capture_output=True, text=True)
    assert re.search(r"perf record ended with status \d+: the file system of \S*/full2 is full \(0 bytes are free\) \(record to another directory: -o\)", done.stderr), done
    if not os.path.isdir("/dev/shm"):
        return
    hot = pathlib.Path("/dev/shm", f"perfmap-{os.getpid()}.js")
    shutil.copy(f"{cwd}/hot.js", hot)
    try:
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "/tmp", "8", PERFMAP, "record", "-o", f"{hot}.d", "--", "node", str(hot), "1"],
                              cwd="/", capture_output=True, text=True)
        assert "the file system of /tmp is full (0 bytes are free), so runtimes could not write all names there" in done.stderr, done
    finally:
        hot.unlink()
        shutil.rmtree(f"{hot}.d", ignore_errors=True)


def files_of_daemons_are_named(cwd):
    done = run("record", "-o", "daemon1", "--", "sh", "-c", "setsid node --perf-basic-prof hot.js 60 > /dev/null 2>&1 & echo $!; until grep -qs hot50 /tmp/perf-$!.map; do sleep 0.1; done", cwd=cwd)
    pid = int(done.stdout)
    log, = pathlib.Path(cwd).glob(f"isolate-*-{pid}-v8.log")
    assert re.search(rf"2 files stay, because processes that go on use them: /tmp/perf-{pid}\.map \(process {pid}\), \S*/{log.name} \(process {pid}\)\n",
                     done.stderr), done.stderr
    os.kill(pid, signal.SIGKILL)
    log.unlink()
    pathlib.Path(f"/tmp/perf-{pid}.map").unlink()


def threads_are_recorded_as_processes(cwd):
    node = subprocess.Popen(["node", "hot.js", "60"], cwd=cwd, stdout=subprocess.DEVNULL)
    until(lambda: processor_time(node.pid) > 0.2 and len(os.listdir(f"/proc/{node.pid}/task")) > 1)
    thread = next(int(name) for name in os.listdir(f"/proc/{node.pid}/task") if int(name) != node.pid)
    done = run("record", "-o", "thread1", "-p", str(thread), "--duration", "1", cwd=cwd)
    node.kill()
    node.wait()
    assert f"{thread} is a thread of process {node.pid}, which is recorded" in done.stderr, done.stderr
    assert read_manifest(f"{cwd}/thread1")["pids"] == [node.pid]
    require_samples(totals("thread1", cwd, "node")["samples"], 20, "node")


def waiting_shells_get_advice(cwd):
    shell = subprocess.Popen(["sh", "-c", "sleep 300; :"], start_new_session=True)
    until(lambda: children_of(shell.pid))
    done = run("record", "-o", "shell2", "-p", str(shell.pid), "--duration", "0.5", cwd=cwd)
    assert "and 1 child process was not recorded (record them, too: --all-children, or with -p)" in done.stderr, done.stderr
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()


def default_names_are_free(cwd):
    """Of recordings that begin in one second."""
    going = [subprocess.Popen([PERFMAP, "record", "--runtime", "none", "--", "true"], cwd=cwd, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for one in going:
        told = one.communicate()[1]
        assert one.returncode == 0, told
    directories = list(pathlib.Path(cwd).glob("perfmap-true-*"))
    assert len(directories) == 4, directories
    for directory in directories:
        read_manifest(directory)


def failures_of_perf_are_told_once(cwd):
    done = subprocess.run([PERFMAP, "record", "--call-graph", "lbr", "-o", "lbr1", "--", "true"], cwd=cwd, capture_output=True, text=True)
    if done.returncode == 0:
        return print("skipped in part: branches can be recorded here")
    assert done.stderr.count("Error:") == 1, done.stderr


def readers_that_go_end_nothing(cwd):
    """As in `perfmap record ... 2>&1 | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PERFMAP, "record", "--runtime", "none", "-o", "piped", "--propagate", "--", "sh", "-c", "exit 3"], cwd=cwd, stderr=writing)
    os.close(writing)
    assert done.returncode == 3, done
    read_manifest(f"{cwd}/piped")


def failures_of_perf_have_a_reason(cwd):
    done = run("record", "-o", "bad", "-e", "nosuch:nosuch", "--", "true", cwd=cwd, expected=2)
    assert re.search(r"error: there is no recording: perf record ended with status 129: .*nosuch", done.stderr), done.stderr


def smaller_buffers_are_tried(cwd):
    """The root of a user namespace may not lock as much memory as root."""
    if subprocess.run(["unshare", "-r", "true"], capture_output=True).returncode != 0:
        return print("skipped in part: no user namespaces here")
    done = subprocess.run(["unshare", "-r", PERFMAP, "record", "--runtime", "none", "-o", "userns", "--", "sh", "-c", "echo once"], cwd=cwd,
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "once\n", done
    words = json.loads(pathlib.Path(cwd, "userns/recording.json").read_text())["perf"]
    assert "16M" not in words, words


def fifos_do_not_hang_perf(cwd):
    """perf reads the map of a process when it ends, if a sample is in generated code."""
    pathlib.Path(cwd, "fifo.py").write_text("""import ctypes, mmap, os
os.mkfifo(f"/tmp/perf-{os.getpid()}.map")
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\\xb9\\xff\\xff\\xff\\x3f\\xff\\xc9\\x75\\xfc\\xc3")  # a loop
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
""")
    done = subprocess.run([PERFMAP, "record", "-o", "fifo1", "--call-graph", "fp", "--", sys.executable, "fifo.py"], cwd=cwd,
                          capture_output=True, text=True, timeout=HANG)
    for path in re.findall(r"/tmp/perf-\d+\.map", done.stderr):
        pathlib.Path(path).unlink(missing_ok=True)
    assert done.returncode == 0 and "is a FIFO, in which perf would hang" in done.stderr, done.stderr


def logs_elsewhere_are_removed(cwd):
    """Of V8, in a directory to which the program changes."""
    pathlib.Path(cwd, "elsewhere").mkdir()
    run("record", "-o", "cd1", "--", "sh", "-c", "cd elsewhere && node ../hot.js 0.4", cwd=cwd)
    assert not os.listdir(f"{cwd}/elsewhere"), os.listdir(f"{cwd}/elsewhere")


def other_users_are_named(cwd):
    """A program that runs as another user, who can neither enter the recording nor write here."""
    if os.geteuid() != 0:
        return print("skipped in part: only root can start programs as other users")
    os.chmod(cwd, 0o755)
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = run("record", "-o", "user1", "--", *as_nobody, "node", "hot.js", "0.4", cwd=cwd)
    assert done.stdout == "done true\n", done.stdout
    assert len(read_manifest(f"{cwd}/user1")["files"]) == 1, done.stderr
    if shutil.which("pypy3"):
        loop = "s = 0\nfor i in range(100000000): s += i % 7"
        done = run("record", "--runtime", "pypy", "-o", "user3", "--", *as_nobody, "pypy3", "-c", loop, cwd=cwd)
        directory, = set(re.findall(r"/tmp/perfmap-\w+", done.stderr))
        assert not os.path.exists(directory), directory
        kinds = [file["kind"] for file in read_manifest(f"{cwd}/user3")["files"]]
        require(kinds, "no sample of the program's JIT code, so no map of it")
        assert kinds == ["map"], kinds
    if shutil.which("php"):
        done = run("record", "--runtime", "php", "-o", "user2", "--", *as_nobody, "php", "hot.php", cwd=cwd)
        assert [file["kind"] for file in read_manifest(f"{cwd}/user2")["files"]] == ["map"], done.stderr


def stale_maps_are_one_line(cwd):
    """Any user can leave maps for the pids to come."""
    script = """
import os, sys
for _ in range(3):
    child = os.fork()
    if child == 0:
        path = f'/tmp/perf-{os.getpid()}.map'
        open(path, 'w').close()
        os.utime(path, (1, 1))
        print(path, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    done = run("record", "--runtime", "none", "-o", "stale1", "--", sys.executable, "-c", script, cwd=cwd)
    maps = done.stdout.split()
    found = re.findall("warning: (.*older than the process.*)", done.stderr)
    assert found == [f"3 files are not used: {min(maps)} (it is older than the process), and 2 more (--verbose names them)"], done.stderr
    for path in maps:
        os.unlink(path)


def limits_of_files_are_named(cwd):
    loop = "while :; do :; done"
    done = subprocess.run(["sh", "-c", 'ulimit -f 600; exec "$0" record --runtime none -F 9999 -o limit1 -- timeout 60 sh -c "$1"', PERFMAP, loop], cwd=cwd,
                          capture_output=True, text=True)
    assert "by SIGXFSZ after" in done.stderr and "limit of the size of files (ulimit -f)" in done.stderr, done.stderr
    write = "ulimit -f 1; exec head -c 10000 /dev/zero > big"
    done = run("record", "--runtime", "none", "-o", "limit2", "--", "sh", "-c", write, cwd=cwd)
    assert "ended by SIGXFSZ: a file reached the limit of its size (ulimit -f)" in done.stderr, done.stderr


def directories_are_no_programs(cwd):
    for name in (".", "/tmp"):
        done = run("record", "--", name, cwd=cwd, expected=2)
        assert done.stderr == f"perfmap: error: cannot run {name}: it is a directory\n", done.stderr


def main():
    skip_without_perf()
    run_rows([[(statuses_are_true, None), (ignored_signals_stay_ignored, None), (ctrl_c_keeps_the_data, "node"), (ctrl_c_waits_for_children, "node"), (ctrl_c_belongs_to_the_command, None), (the_second_ctrl_c_reaches_slow_perf, None), (two_signals_at_once_are_two, None), (closed_terminals_keep_the_data, None), (planted_files_stay, "node"),
               (names_of_others_are_refused, "node"), (signals_end_all_processes, "node"), (repeated_signals_keep_the_names, "node"),
               (restarts_are_named, "node"), (handled_signals_have_a_status, None),
               (fourth_signals_end_with_a_message, None), (killed_perf_is_not_the_end_of_the_command, "node"),
               (stopped_perf_ends, None), (files_of_daemons_are_named, "node"),
               (full_file_systems_are_named, "node"), (logs_elsewhere_are_removed, "node")],
              [(readers_that_go_end_nothing, None), (stale_maps_are_one_line, None), (limits_of_files_are_named, None), (directories_are_no_programs, None), (empty_recordings_have_a_reason, None),
               (zombies_are_named_so, None), (dumps_in_working_directories_are_removed, "node"),
               (variables_of_scripts_are_one_line, "node"), (logs_without_a_directory_are_not_printed, "node"), (logs_of_scripts_are_not_printed, "node"),
               (failures_of_perf_have_a_reason, None), (failures_of_perf_are_told_once, None),
               (threads_are_recorded_as_processes, "node"), (waiting_shells_get_advice, None), (default_names_are_free, None),
               (smaller_buffers_are_tried, None), (fifos_do_not_hang_perf, None), (erlang_is_named, "erl"),
               (php_is_named, "php"), (other_users_are_named, "node")]])


main()
