#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the trampoline tests for aarch64 and runs them with qemu: run.sh WORK. Exit status 77: no
# cross compiler, no qemu, or a Catch2 that is not header-only.
set -eu
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $program >/dev/null || { echo "skipped: no $program here"; exit 77; }
done
[ -e /usr/include/catch2/catch.hpp ] || { echo "skipped: needs Catch2 as a header"; exit 77; }
here=$(dirname "$(readlink -f "$0")")
launcher=$(command -v ccache) || launcher=
[ "${PERFMAP_CCACHE:-on}" = on ] || launcher=
cmake -S "$here" -B "$1" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >/dev/null
cmake --build "$1" -j "$(nproc)" >"$1/build.log" || { tail -n 40 "$1/build.log"; exit 1; }
# qemu does not enforce memory limits of the program that it runs.
qemu-aarch64 "$1/trampoline_tests" '~[limits]'
