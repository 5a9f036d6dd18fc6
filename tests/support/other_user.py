# SPDX-License-Identifier: MIT
"""Makes the program accessible to every user: the build may be in a home directory that only its
owner may enter."""
import os
import pathlib
import shutil
import subprocess


def copy_for_all(program, place):
    """Copies the program and our libraries into `place`. Returns the copy and its environment."""
    place = pathlib.Path(place)
    os.chmod(place, 0o755)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for line in linked.splitlines():
        name, _, path = line.strip().partition(" => ")
        if name.startswith("libperfmap"):
            shutil.copy(path.rsplit(" (", 1)[0], place / name)
    copy = place / "perfmap"
    shutil.copy(program, copy)
    for file in place.iterdir():
        os.chmod(file, 0o755)
    return str(copy), {**os.environ, "LD_LIBRARY_PATH": str(place)}
