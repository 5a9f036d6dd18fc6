# SPDX-License-Identifier: MIT
"""Builds the wheel and the sdist of perfmap (PEP 517) with Python's standard library alone.

The same sources give the same bytes. With the config setting "libraries", the shared libraries of
the directories that it names (with ':' between them) go into the wheel, which is then one for this
machine only.
"""
import base64
import gzip
import hashlib
import io
import os
import pathlib
import platform
import re
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "perfmap"
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / PACKAGE / "__init__.py").read_text(), re.M).group(1)
LIBRARIES = ("libperfmap.so.0", "libperfmap-profile.so.0")
METADATA = f"""\
Metadata-Version: 2.1
Name: {PACKAGE}
Version: {VERSION}
Summary: Writes, reads and queries perf maps and jitdumps
License: MIT
Requires-Python: >=3.9
Description-Content-Type: text/markdown
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed

"""
TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can say


def sources():
    return sorted(path for path in (ROOT / PACKAGE).iterdir() if path.suffix == ".py" or path.name == "py.typed")


def metadata():
    return (METADATA + (ROOT / "README.md").read_text()).encode()


def bundled(config_settings):
    """{file name: bytes} of the libraries to put into the wheel."""
    places = (config_settings or {}).get("libraries", "")
    found = {}
    for directory in filter(None, places.split(":")):
        for name in LIBRARIES:
            path = pathlib.Path(directory, name)
            if path.exists():
                found[name] = path.read_bytes()
    if places and not found:
        raise FileNotFoundError(f"none of {', '.join(LIBRARIES)} is in {places}")
    return found


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    libraries = bundled(config_settings)
    tag = f"py3-none-linux_{platform.machine()}" if libraries else "py3-none-any"
    info = f"{PACKAGE}-{VERSION}.dist-info"
    wheel = ("Wheel-Version: 1.0\nGenerator: perfmap_build\n"
             f"Root-Is-Purelib: {'false' if libraries else 'true'}\nTag: {tag}\n")
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in sources()}
    files.update({f"{PACKAGE}/{name}": data for name, data in libraries.items()})
    files.update({f"{info}/METADATA": metadata(), f"{info}/WHEEL": wheel.encode()})
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    file = f"{PACKAGE}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, file), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return file


def build_sdist(sdist_directory, config_settings=None):
    base = f"{PACKAGE}-{VERSION}"
    files = {"PKG-INFO": metadata()}
    for path in [ROOT / "pyproject.toml", ROOT / "README.md", pathlib.Path(__file__).resolve(), *sources()]:
        files[str(path.relative_to(ROOT))] = path.read_bytes()
    file = f"{base}.tar.gz"
    with open(os.path.join(sdist_directory, file), "wb") as raw, \
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
