# SPDX-License-Identifier: MIT
"""scripts/builds.py builds, checks and removes a row, and reports rows that fail, that are unknown and whose compiler is
missing. CMake is replaced by a program that writes what a build has."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = '#!/bin/sh\\ncase "$1" in version) echo "perfmap 0" ;; info) test -e "$2" ;; esac\\n'
CMAKE = f"""#!/bin/sh
echo "$*" >>"$LOG"
case "$1" in
-B) mkdir -p "$2/apps/perfmap"
  printf '[{{"file": "a.cpp", "command": "c++ %s a.cpp"}}]' "$USED_FLAGS" >"$2/compile_commands.json" ;;
--build) printf '{PROGRAM}' >"$2/apps/perfmap/perfmap"; chmod +x "$2/apps/perfmap/perfmap" ;;
esac
"""


class Tree:
    def __init__(self, folder):
        self.root, self.log = folder / "tree", folder / "log"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/builds.py", self.root / "scripts")
        dump = "tests/wild/node/jit-683-lines.dump"
        (self.root / dump).parent.mkdir(parents=True)
        shutil.copy(ROOT / dump, self.root / dump)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name, text in (("cmake", CMAKE), ("cc", "#!/bin/sh\n")):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        for name in ("mkdir", "chmod", "test"):
            (self.bin / name).symlink_to(shutil.which(name))

    def run(self, *rows, flags=""):
        done = subprocess.run([sys.executable, self.root / "scripts/builds.py", *rows], capture_output=True, text=True,
                              env={"PATH": str(self.bin), "LOG": str(self.log), "USED_FLAGS": flags, "PERFMAP_JOBS": "3"})
        return done.returncode, done.stdout + done.stderr, self.root / "build/builds" / rows[0]


with tempfile.TemporaryDirectory() as scratch:
    tree = Tree(pathlib.Path(scratch))
    status, printed, _ = tree.run("unknown")
    assert status == 1 and "no build 'unknown'; there are: gcc-12 " in printed and not tree.log.exists(), printed
    status, printed, build = tree.run("gcc-12")
    assert status == 0 and "skipped: the compiler or dpkg-buildflags is missing" in printed, printed
    status, printed, build = tree.run("c++23", flags="-std=gnu++23")
    assert status == 0 and printed.endswith(" ok\n") and not build.exists(), printed
    configured, built = tree.log.read_text().splitlines()
    assert "-DCMAKE_CXX_STANDARD=23" in configured and "-DPERFMAP_WERROR=ON" in configured, configured
    assert built.startswith(f"--build {os.path.realpath(build.parent)}/c++23 -j 3 --target perfmap_program"), built
    status, printed, build = tree.run("c++23", flags="-std=gnu++20")
    assert status == 1 and "FAILED: not each source is compiled with -std=gnu++23" in printed and build.exists(), printed
print("4 runs of builds.py")
