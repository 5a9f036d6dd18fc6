# SPDX-License-Identifier: MIT
"""scripts/sanitizer_report.py: an address in a report gets its function and line; other bytes stay."""
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/sanitizer_report.py"
SOURCE = """static inline __attribute__((always_inline)) void inner(void) { __asm__("inlined: nop"); }
int main(void) {
  inner();
}
"""


def with_lines(report, folder, path=os.environ["PATH"]):
    file = folder / "report.1"
    file.write_bytes(report)
    ran = subprocess.run([sys.executable, "-B", SCRIPT, file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env={**os.environ, "PATH": path, "PYTHONIOENCODING": "utf-8:strict"}, check=True)
    return ran.stdout


with tempfile.TemporaryDirectory() as scratch:
    root = pathlib.Path(scratch)
    tool = root / "a folder/tool"
    tool.parent.mkdir()
    source = tool.with_suffix(".c")
    source.write_text(SOURCE)
    subprocess.run(["cc", "-g", "-o", tool, source], check=True)
    symbols = subprocess.run(["nm", tool], stdout=subprocess.PIPE, text=True, check=True).stdout
    address = {line.split()[2]: line.split()[0].lstrip("0") for line in symbols.splitlines() if len(line.split()) == 3}
    report = f"""ERROR: a report
    #0 ({tool}+0x{address["inlined"]}) (BuildId: 0123abcd)
    #1 ({tool}+0x{address["main"]})
    #2 ({tool}+0x{address["_start"]})
    #3 (/nowhere+0x10)
SUMMARY: a bug ({tool}+0x{address["main"]}) \xff
""".encode("latin-1")
    expected = f"""ERROR: a report
    #0 inner at {source}:1:65
       (inlined by) inlined at {source}:3:3
    #1 main at {source}:2:16
    #2 _start ({tool}+0x{address["_start"]})
    #3 (/nowhere+0x10)
SUMMARY: a bug main at {source}:2:16 \xff
""".encode("latin-1")
    lines = with_lines(report, root)
    assert lines == expected, lines.decode(errors="replace")
    (root / "bin").mkdir()
    broken = root / "bin/llvm-symbolizer-16"
    without = report.replace(b" (BuildId: 0123abcd)", b"")
    assert with_lines(report, root, str(root / "bin")) == without  # there is no symbolizer
    broken.write_text("#!/bin/sh\nread address; exit 1\n")
    broken.chmod(0o755)
    assert with_lines(report, root, f"{root}/bin:{os.environ['PATH']}") == without  # it crashes
    # In a folder that all users can write to: links and pipes of others, an empty report, a torn one, a huge one.
    sys.path.insert(0, str(SCRIPT.parent))
    import sanitizer_report

    folder, secret = root / "reports", root / "secret"
    secret.write_text("secret")
    sanitizer_report.start(folder)
    (folder / "report.1").symlink_to(secret)
    os.mkfifo(folder / "report.2")
    (folder / "report.3").mkdir()
    (folder / "report.4").touch()
    (folder / "report.5").write_text(f"ERROR\n    #0 ({tool}+0x{address['main']}")
    (folder / "report.6").write_text("x" * (sanitizer_report.MAX_SIZE + 1))
    (folder / "report.7").symlink_to("report.7")
    sanitizer_report.finish(folder)
    assert folder.stat().st_mode & 0o777 == 0o755
    texts = [sanitizer_report.read(report) for report in sanitizer_report.reports(folder)]
    bad = "not a file that can be read\n"
    assert texts[:5] == [bad, bad, bad, "", f"ERROR\n    #0 ({tool}+0x{address['main']}"], texts[:5]
    assert len(texts[5]) == sanitizer_report.MAX_SIZE and texts[6:] == [bad]
    assert secret.read_text() == "secret"
    sanitizer_report.start(folder)
    assert not sanitizer_report.reports(folder)
print("a report has functions and lines")
