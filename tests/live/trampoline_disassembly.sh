#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the trampolines of all machines with a disassembler: trampoline_disassembly.sh BYTES
# Exit status 77: llvm-mc is not installed.
set -eu
bytes=$(readlink -f "$1")
command -v llvm-mc >/dev/null || { echo "skipped: no llvm-mc here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {
  "$bytes" "$1" | llvm-mc --disassemble --triple="$1" --mattr="$2" 2>"$work/complaints" |
    sed -E '/^[[:space:]]*\./d; s/[[:space:]]+/ /g; s/^ //; s/ *\/\/.*$//; s/ *# .*$//; s/ $//' >"$work/found"
  cat >"$work/expected"
  diff -u "$work/expected" "$work/found"
  [ ! -s "$work/complaints" ] || { cat "$work/complaints"; exit 1; }
}

check x86_64 '' <<'CODE'
endbr64
pushq %rbp
movq %rsp, %rbp
callq *%rcx
popq %rbp
retq
CODE
check aarch64 +bti <<'CODE'
bti c
stp x29, x30, [sp, #-16]!
mov x29, sp
blr x3
ldp x29, x30, [sp], #16
ret
CODE
echo "both machines' trampolines are what they should be"
