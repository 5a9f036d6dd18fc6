# SPDX-License-Identifier: MIT
"""private_sources.py PERFMAP: HTML pages leave out source files that other users cannot read, unless they are asked for;
other outputs have them."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WILD = pathlib.Path(__file__).resolve().parent.parent / "wild"
LINE, NOTE = "while (n != 0) {", "left out, because other users cannot read it"
WARNING = "cannot use /srv/tally/tally.c: other users cannot read it"
ANNOTATE, CODE = ["annotate", "perf.data", "digits", "--symfs", "."], ["stacks", "perf.data", "--symfs", ".", "--code"]


def main():
    perfmap = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for part in ("tally", "tally-source"):
            shutil.copytree(WILD / part, folder, dirs_exist_ok=True)
        source = pathlib.Path(folder, "srv/tally/tally.c")

        def check(words, has_line, in_shared):
            done = subprocess.run([perfmap, *words], cwd=folder, capture_output=True, text=True, check=True)
            assert (LINE in done.stdout) == has_line, (words, oct(source.stat().st_mode))
            assert (NOTE in done.stdout) == (WARNING in done.stderr) == (in_shared and not has_line), (words, done.stderr)

        for file_mode, directory_mode in ((0o644, 0o755), (0o600, 0o755), (0o644, 0o750)):
            source.chmod(file_mode)
            source.parent.chmod(directory_mode)
            is_open = file_mode & directory_mode & 4 != 0
            for words in (ANNOTATE, CODE):
                check([*words, "--format", "html"], is_open, True)
                check([*words, "--format", "html", "--private-sources"], True, False)
            check(ANNOTATE, True, False)
            check([*ANNOTATE, "--format", "json"], True, False)
            # By a link, and where other users can read it already.
            source.parent.rename(folder + "/elsewhere")
            source.parent.symlink_to("../elsewhere")
            check([*ANNOTATE, "--format", "html"], is_open, True)
            source.parent.unlink()
            os.rename(folder + "/elsewhere", source.parent)


if __name__ == "__main__":
    main()
