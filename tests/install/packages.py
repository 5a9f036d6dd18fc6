# SPDX-License-Identifier: MIT
"""Packages of a build are made, checked, installed, used and removed: packages.py BUILD SOURCE WORK

Nothing is compiled: the packages are linked from the objects of BUILD. The .deb packages are installed in a
minimal Debian, which scripts/bare_root.sh makes once and keeps; the .rpm packages have the same files, and are
installed in an empty directory.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

NAMES = {"perfmap", "libperfmap0", "libperfmap-writer0", "libperfmap-dev", "perfmap-dbg"}
# File: its package. A folder ends with a slash.
PLACES = {
    "usr/bin/perfmap": "perfmap", "usr/share/man/man1/perfmap.1.gz": "perfmap",
    "usr/share/man/man5/perfmap-map.5.gz": "perfmap", "usr/share/perfmap/schema/perfmap.lint-1.json": "perfmap",
    "usr/share/bash-completion/completions/perfmap": "perfmap", "usr/share/zsh/site-functions/_perfmap": "perfmap",
    "usr/share/fish/vendor_completions.d/perfmap.fish": "perfmap", "usr/share/doc/perfmap/README.md": "perfmap",
    "LIB/libperfmap.so.0": "libperfmap0", "LIB/libperfmap-profile.so.0": "libperfmap0",
    "LIB/libperfmap-cpython.so.0": "libperfmap0", "LIB/libperfmap-writer.so.0": "libperfmap-writer0",
    "LIB/libperfmap-writer.a": "libperfmap-dev", "LIB/libperfmap.so": "libperfmap-dev",
    "LIB/libperfmap-writer.so": "libperfmap-dev", "LIB/pkgconfig/perfmap.pc": "libperfmap-dev",
    "LIB/cmake/perfmap/perfmapConfig.cmake": "libperfmap-dev", "usr/include/perfmap.h": "libperfmap-dev",
    "usr/share/man/man3/libperfmap.3.gz": "libperfmap-dev"}
COMPILES = re.compile(r" -c \S+\.(c|cpp|cxx)( |$)")
TARGETS = ("perfmap_program", "perfmap_cpython", "perfmap_writer", "perfmap_writer_static", "manual_pages")
USE = pathlib.Path(__file__).with_name("use_packages.sh")

build, source, work = (pathlib.Path(word).resolve() for word in sys.argv[1:])
started = time.monotonic()


def run(*words, **how):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    assert done.returncode == 0, f"{words}: status {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def said(what):
    print(f"{time.monotonic() - started:5.1f} s  {what}", flush=True)


def cached(name):
    return re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)[1]


def link(made):
    """Configures for packages, and makes all but the objects, which are those of the build."""
    run("cmake", "--preset", "packages", "-B", made, f"-DPERFMAP_UNITY={cached('PERFMAP_UNITY')}",
        f"-DCMAKE_C_COMPILER={cached('CMAKE_C_COMPILER')}", f"-DCMAKE_CXX_COMPILER={cached('CMAKE_CXX_COMPILER')}",
        cwd=source)
    for folder in ("lib", "apps"):
        for compiled in (build / folder).rglob("*.o"):
            copy = made / compiled.relative_to(build)
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(compiled, copy)
    for command in run("ninja", "-C", made, "-t", "commands", *TARGETS).splitlines():
        if not COMPILES.search(command) and not command.startswith("ninja: "):
            run("sh", "-c", command, cwd=made)


def pack(made):
    for generator in ("DEB", *(["RPM"] if shutil.which("rpmbuild") else [])):
        run("cpack", "-G", generator, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=made)  # not xz, which takes longer
    packages = made / "packages"
    debs = {path.name.split("_")[0]: path for path in packages.glob("*.deb")}
    rpms = {re.sub(r"-[0-9.]+-\d+\.\w+\.rpm$", "", path.name): path for path in packages.glob("*.rpm")}
    assert debs.keys() == NAMES, debs
    assert not rpms or rpms.keys() == NAMES, rpms
    return debs, rpms


def files_below(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def contents(path):
    return f"-> {os.readlink(path)}" if path.is_symlink() else path.read_bytes()


def check_debs(debs):
    """Each file is in one package, the right one, and the debug data are those of the binaries."""
    owners = {}
    for name, deb in debs.items():
        (work / "deb").mkdir(exist_ok=True)
        run("dpkg-deb", "-x", deb, work / "deb" / name)
        for file in files_below(work / "deb" / name):
            assert file not in owners, (file, name, owners[file])
            owners[file] = name
    libraries = next(os.path.dirname(file) for file in owners if file.endswith("/libperfmap.so.0"))
    for file, name in PLACES.items():
        file = file.replace("LIB", libraries)
        assert owners.get(file) == name, (file, owners.get(file))
    for name in NAMES:
        for file in ("copyright", "changelog.gz", "changelog.Debian.gz"):
            assert f"usr/share/doc/{name}/{file}" in owners, (name, file)
        described = run("dpkg-deb", "-f", debs[name], "Description").splitlines()
        assert len(described) > 2 and "built using" not in described[0], described
    for file in (file for file in owners if re.search(r"/bin/perfmap$|\.so\.[0-9.]+$", file)):
        path = work / "deb" / owners[file] / file
        if path.is_symlink():
            continue
        assert "PATH" not in run("readelf", "-d", path), f"{file} has a search path"
        identity = re.search(r"Build ID: (\w\w)(\w+)", run("readelf", "-n", path))
        assert owners[f"usr/lib/debug/.build-id/{identity[1]}/{identity[2]}.debug"] == "perfmap-dbg", file
        assert ".symtab" not in run("readelf", "-SW", path), f"{file} is not stripped"
    needs = run("dpkg-deb", "-f", debs["libperfmap-writer0"], "Depends")
    assert re.fullmatch(r"libc6 \([^)]*\)\s*", needs), needs
    return libraries


def check_lintian(debs):
    if not shutil.which("lintian"):
        print("skipped in part: lintian is not installed")
        return
    # The objects of this build have no line tables.
    words = ["lintian", "--fail-on", "error,warning", "--suppress-tags", "debug-file-with-no-debug-symbols"]
    run(*words, *(["--allow-root"] if os.geteuid() == 0 else []), *debs.values())
    said("lintian has nothing to say")


def check_rpms(debs, rpms):
    if not rpms or not shutil.which("rpm2cpio") or not shutil.which("cpio"):
        print("skipped in part: rpm, rpm2cpio or cpio is not installed")
        return
    for name, rpm in rpms.items():
        place = work / "rpm" / name
        place.mkdir(parents=True)
        run("sh", "-c", f"rpm2cpio {rpm} | cpio -id --quiet", cwd=place)
        theirs = files_below(work / "deb" / name)
        theirs = {file: theirs[file] for file in theirs if "/lintian/" not in file}
        ours = files_below(place)
        assert ours.keys() == theirs.keys(), (name, ours.keys() ^ theirs.keys())
        listed = {*run("rpm", "-qlp", rpm).split()}
        assert {f"/{file}" for file in ours} <= listed, {f"/{file}" for file in ours} - listed
        different = [file for file in ours if contents(ours[file]) != contents(theirs[file])]
        assert not different, (name, different)
    said("the .rpm packages have the files of the .deb packages")
    install_rpms(rpms)


def install_rpms(rpms):
    root = work / "rpm-root"
    root.mkdir()
    rpm = ["rpm", "--root", root, "--nodeps", "--noscripts"]
    if os.geteuid() != 0:
        print("skipped in part: only root can install .rpm packages in another root directory")
        return
    run(*rpm, "-i", *rpms.values())
    library = next(root.rglob("libperfmap.so.0")).parent
    answer = run(root / "usr/bin/perfmap", "version", env=os.environ | {"LD_LIBRARY_PATH": str(library)})
    assert answer.startswith("perfmap "), answer
    run(*rpm, "-e", *NAMES)
    left = [file for file in files_below(root) if "perfmap" in file]
    assert not left, left
    said("the .rpm packages are installed, used and removed")


def base_root():
    """A minimal Debian, or None and the reason."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return None, "there are no rights for a mount namespace"
    done = subprocess.run([source / "scripts/bare_root.sh", "--base"], capture_output=True, text=True)
    if done.returncode == 77:
        return None, done.stderr.strip().splitlines()[-1]
    assert done.returncode == 0, done
    return pathlib.Path(done.stdout.strip().splitlines()[-1]), ""


def compile_consumers(made, root, libraries):
    """With the host's compiler, and the headers and libraries that are installed in the root."""
    example = source / "examples/runtime.c"
    environment = os.environ | {"PKG_CONFIG_LIBDIR": str(root / libraries / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "perfmap", env=environment).split()
    run(cached("CMAKE_C_COMPILER"), "-std=c99", example, *flags, "-o", made / "by-pkg-config")
    project = made / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES C CXX)\n"
        "find_package(perfmap 0.1 REQUIRED)\n"
        f"add_executable(by-cmake {example})\ntarget_link_libraries(by-cmake perfmap::perfmap)\n"
        f"add_executable(by-cmake-writer {example})\ntarget_link_libraries(by-cmake-writer perfmap::writer)\n")
    # Without a search path in the program: the root's loader finds the libraries.
    run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={root}/usr",
        "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "-DCMAKE_SKIP_RPATH=ON")
    found = re.search(r"perfmap_DIR:PATH=(.*)", (project / "build/CMakeCache.txt").read_text())[1]
    assert found.startswith(str(root)), found
    run("cmake", "--build", project / "build")
    return [made / "by-pkg-config", project / "build/by-cmake", project / "build/by-cmake-writer"]


def install_debs(debs, libraries):
    base, why_not = base_root()
    if base is None:
        print(f"skipped in part: the packages are not installed: {why_not}")
        return
    said("a minimal Debian is there")
    place = work / "root"
    for folder in ("packages", "consumers"):
        (place / "input" / folder).mkdir(parents=True)
    for deb in debs.values():
        shutil.copy(deb, place / "input/packages")
    shutil.copy(source / "tests/wild/node/jit-683-lines.dump", place / "input")
    for step in ("install", "use", "remove"):
        if step == "use":
            for program in compile_consumers(place, place / "root", libraries):
                shutil.copy(program, place / "input/consumers")
        run("unshare", "--mount", "--propagation", "private", USE, base, place, step)
        said(f"{step}: done")


missing = [name for name in ("dpkg-deb", "dpkg-shlibdeps", "file", "objcopy") if not shutil.which(name)]
if missing:
    print(f"skipped: {', '.join(missing)}: not installed")
    sys.exit(77)
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
link(work / "made")
said("linked")
debs, rpms = pack(work / "made")
said("packed")
libraries = check_debs(debs)
check_lintian(debs)
check_rpms(debs, rpms)
install_debs(debs, libraries)
shutil.rmtree(work)
