#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the build tree into a prefix, and builds and runs the examples against it, with
# find_package and with pkg-config: run.sh BUILD SOURCE WORK
set -eu
build=$1 source=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
lib=$(dirname "$(find "$work/prefix" -name libperfmap.so)")

"$work/prefix/bin/perfmap" --version
for file in share/bash-completion/completions/perfmap share/zsh/site-functions/_perfmap \
  share/fish/vendor_completions.d/perfmap.fish share/doc/perfmap/README.md \
  share/doc/perfmap/docs/diagnostics.md share/perfmap/schema/perfmap.lint-1.json; do
  test -s "$work/prefix/$file"
done
# Each link to another file.
doc=$work/prefix/share/doc/perfmap
grep -Hro '](\(\.\./\)*[a-zA-Z][a-zA-Z0-9_./-]*[)#]' --include='*.md' "$doc" | while IFS=: read -r page link; do
  link=${link#](}
  test -e "$(dirname "$page")/${link%?}" || { echo "$page links to ${link%?}, which is not installed"; exit 1; }
done

cmake -S "$source/tests/install/cpp" -B "$work/cpp" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DEXAMPLES="$source/examples" >/dev/null
cmake --build "$work/cpp" >/dev/null
printf '1000 10 foo\n' >"$work/perf.map"
test "$("$work/cpp/consumer" "$work/perf.map" 1002)" = "foo+0x2"
dump=$source/tests/wild/node/jit-683-lines.dump
test "$("$work/cpp/profile_consumer" "$dump" "$work/cpp/dump.elf")" = "47 functions"

sleep 60 &
pid=$!
until test "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$(command -v sleep)")"; do :; done
until grep -q ' r-xp .*libc\.' "/proc/$pid/maps"; do :; done # until the loader has mapped libc
address=$(sed -n 's/-.* r-xp .*libc\..*//p' "/proc/$pid/maps" | head -n 1)
"$work/cpp/symbolize" "$pid" "$address" 10 | grep -qx 'no name: unmapped'
kill "$pid"

cflags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs perfmap)
# shellcheck disable=SC2086
cc -std=c99 -pedantic -Wall -Werror "$source/examples/runtime.c" $cflags -o "$work/runtime"
LD_LIBRARY_PATH=$lib "$work/runtime" &
pid=$!
wait "$pid"
grep -q 'jit::answer' "/tmp/perf-$pid.map"
rm "/tmp/perf-$pid.map"
# shellcheck disable=SC2086
cc -std=c99 -pedantic -Wall -Werror "$source/examples/jit.c" $cflags -o "$work/jit"
LD_LIBRARY_PATH=$lib "$work/jit" "$work" 1 || test $? -eq 77
# shellcheck disable=SC2086
cc -std=c99 -pedantic -Wall -Werror "$source/examples/jitlog.c" $cflags -o "$work/jitlog"
LD_LIBRARY_PATH=$lib "$work/jitlog" "$work/loops.log"
grep -q '# outer loop' "$work/loops.log"
# shellcheck disable=SC2086
cc -std=c99 -pedantic -Wall -Werror "$source"/examples/interpreter/*.c $cflags -lm \
  -o "$work/interpreter"
LD_LIBRARY_PATH=$lib "$work/interpreter" none "$source/examples/interpreter/demo.lisp" >/dev/null
flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs perfmap-cpython)
# shellcheck disable=SC2086
cc -std=c99 -D_POSIX_C_SOURCE=200809L -pedantic -Wall -Werror -I "$source/tests" "$source/tests/cpython/use_cpython.c" \
  $flags -o "$work/cpython"
LD_LIBRARY_PATH=$lib "$work/cpython"
flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs perfmap-profile)
# shellcheck disable=SC2086
c++ $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --variable=cxxflags perfmap-profile) \
  "$source/examples/to_elf.cpp" $flags -o "$work/to_elf"
LD_LIBRARY_PATH=$lib "$work/to_elf" "$dump" "$work/dump.elf"
cmp "$work/dump.elf" "$work/cpp/dump.elf"
# An older language is refused with the option that is missing.
# shellcheck disable=SC2086
c++ -std=c++17 -fsyntax-only "$source/examples/to_elf.cpp" $flags 2>&1 | grep -q 'need C++20: -std=c++20'

# What others installed stays.
touch "$work/prefix/share/doc/other"
cmake --build "$build" --target uninstall >/dev/null
test "$(cd "$work/prefix" && find . ! -type d)" = ./share/doc/other
test -z "$(find "$work/prefix" -name perfmap)"
if cmake --build "$build" --target uninstall >"$work/uninstall.log" 2>&1; then
  echo "uninstall removes what is not installed" >&2
  exit 1
fi
grep -q 'nothing was installed from this build directory' "$work/uninstall.log"

# The writers alone: no package but a compiler, and nothing but libc at run time.
cmake -S "$source" -B "$work/writer" -DPERFMAP_WRITER_ONLY=ON -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work/writer" --parallel 2 >/dev/null
cmake --install "$work/writer" --prefix "$work/writer-prefix" >/dev/null
lib=$(dirname "$(find "$work/writer-prefix" -name libperfmap-writer.a)")
flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs perfmap-writer)
# shellcheck disable=SC2086
cc -std=c99 -pedantic -Wall -Werror "$source/examples/runtime.c" $flags -o "$work/with-writer"
LD_LIBRARY_PATH=$lib "$work/with-writer" &
pid=$!
wait "$pid"
grep -q 'jit::answer' "/tmp/perf-$pid.map"
rm "/tmp/perf-$pid.map"
cc -std=c99 -static "$source/examples/runtime.c" -I "$work/writer-prefix/include" \
  "$lib/libperfmap-writer.a" -o "$work/all-static"
"$work/all-static" &
pid=$!
wait "$pid"
rm "/tmp/perf-$pid.map"

# Static libraries. They are only planned here: to build them takes as long as the shared ones.
cmake -S "$source" -B "$work/static" -G Ninja -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF >/dev/null
ninja -C "$work/static" -t targets all >"$work/static-targets"
for library in libperfmap.a libperfmap-profile.a libperfmap-writer.a; do
  grep -q "/$library:" "$work/static-targets"
done
if grep -E '/libperfmap(-profile)?[.]so' "$work/static-targets"; then
  echo "BUILD_SHARED_LIBS=OFF builds shared libraries" >&2
  exit 1
fi
echo "all consumers work"
