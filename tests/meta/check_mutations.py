# SPDX-License-Identifier: MIT
"""scripts/mutations.py changes only code: no comment, string, template or declaration."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
sys.dont_write_bytecode = True
import mutations  # noqa: E402

EXPECTED = {
    "if (a < b && !done) return;": {
        "if (a <= b && !done) return;", "if (a < b || !done) return;", "if (a < b && done) return;",
        "if (!(a < b && !done)) return;", "if (false && (a < b && !done)) return;"},
    "if (a == 10) f();  // 11 == 12": {
        "if (a != 10) f();  // 11 == 12", "if (a == 11) f();  // 11 == 12",
        "if (a == 9) f();  // 11 == 12", "if (false && (a == 10)) f();  // 11 == 12"},
    'const auto x = "a < b && 1" + y;': {'const auto x = "a < b && 1" - y;'},
    "std::map<int, std::vector<char>> f(T&& x, U&& y);": set(),
    "template <typename T, int N = 3>": set(),
    "static_assert(sizeof(x) == 8);": set(),
    "table.add(x);": {";"},
    "own->table[n] = x;": {";"},
    "++count;": {";"},
    "break;": {";"},
    "std::uint64_t size = 0x10u;": {"std::uint64_t size = 0x11u;", "std::uint64_t size = 0xfu;"},
    "if (auto found = find(x); found->size > 1'000) {": {
        "if (auto found = find(x); found->size >= 1'000) {",
        "if (auto found = find(x); found->size > 1001) {",
        "if (auto found = find(x); found->size > 999) {",
        "if (auto found = find(x); !(found->size > 1'000)) {",
        "if (auto found = find(x); false && (found->size > 1'000)) {"},
    "if (auto found = find(x)) {": set(),
    "return true;": {"return false;"},
    "return std::min(a, b);": {"return {};", "return std::max(a, b);"},
    "return c >= 'a' ? size - 1 : size;": {
        "return c > 'a' ? size - 1 : size;", "return c >= 'b' ? size - 1 : size;",
        "return c >= 'a' ? size + 1 : size;", "return c >= 'a' ? size - 2 : size;",
        "return c >= 'a' ? size - 0 : size;", "return {};"},
    "buffer.reserve(10);": {";"},
    "#define LIMIT (1 + 2)": set(),
    "/* a == b */ x = y;": {";"},
}

wrong = 0
for line, expected in EXPECTED.items():
    text = f"void f() {{\n  {line}\n}}\n"
    made = {(mutant.line, mutant.after.strip()) for mutant in mutations.mutants("f.cpp", text)}
    if made != {(2, after) for after in expected}:
        print(f"{line}\n  got {sorted(made)}\n  not {sorted(expected)}")
        wrong += 1

# Statements over several lines cannot be dropped.
text = "void f() {\n  g(a,\n    h(b));\n  x = y +\n      z(1);\n}\n"
dropped = [mutant.line for mutant in mutations.mutants("f.cpp", text) if mutant.after.strip() == ";"]
if dropped:
    print(f"drops halves of statements: {dropped}")
    wrong += 1
print(f"{len(EXPECTED)} lines are changed as expected" if not wrong else f"{wrong} are not")
sys.exit(1 if wrong else 0)
