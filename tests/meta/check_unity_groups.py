# SPDX-License-Identifier: MIT
"""scripts/unity_groups.py separates files if a name of one would mean something else in the other."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
sys.dont_write_bytecode = True
import unity_groups  # noqa: E402

OWN = {  # text: the names that it declares for itself alone
    "namespace a { namespace { int f(int x) { return x; } } }": {"f"},
    "namespace a { namespace { int g(int); } int h() { return g(1); } }": {"g"},
    "namespace a { static int f() { return 0; } int g() { static int n; return n; } }": {"f"},
    "namespace { std::vector<std::pair<int, int>> f(const A& a) noexcept(g(1)) { return {}; } }": {"f"},
    "namespace a { constexpr std::array<int, 2> kRows{1, 2}; extern const int kFar; inline constexpr int kAll = 1; }":
        {"kRows"},
    "namespace { enum { one, two = 2 }; enum class E : int { three }; }": {"one", "two", "E"},
    "namespace a { struct S { int member; void f() {} }; struct A::Inner { int x; }; class Declared; }": {"S"},
    "namespace { template <typename T, int N = (3 > 2)> struct S : B<T> { }; }": {"S"},
    "namespace { bool (*hook)(int) = nullptr; int row[] = {1}, *next = row; }": {"hook", "row", "next"},
    "namespace a { A& A::operator=(A&& other) { return *this; } A::A(int x) : x_{x}, y_(1) {} int B::f() { } }":
        set(),
    "namespace { bool operator==(const A& a, const A& b) { return a.x == b.x; } }": set(),
    "using Text = std::string; using std::swap; namespace fs = std::filesystem;": {"Text", "swap", "fs"},
    '#define ROW(x) \\\n  f(x)\nextern "C" { int visible(void) { return \'"\'; } }': {"ROW"},
    'namespace { const char* text = R"x(} int f() {)x"; /* int g() {} */ }  // int h() {}': {"text"},
    "static_assert(sizeof(int) == 4); namespace { [[maybe_unused]] const long kSize = 1'000; }": {"kSize"},
}
FILES = {
    "a.cpp": '#include "a.hpp"\nnamespace { int own() { return 0; } }',
    "a.hpp": "struct A { int other; };",
    "member.cpp": "int f(const A& a) { return a.own + A::own; }",
    "call.cpp": "int g() { return own(); }",
    "header.cpp": '#include "uses.hpp"\n',
    "uses.hpp": "void own();",
    "also.cpp": '#include "uses.hpp"\nnamespace { int also() { return 0; } using Text = long; }',
    "same.cpp": "namespace { using Text = long; Text t(); }",
    "outside.cpp": "using Text = long; Text v();",
    "different.cpp": "namespace { using Text = int; Text u(); }",
    "directive.cpp": "using namespace a;",
}
PAIRS = {  # (earlier, later): whether one compilation is right
    ("a.cpp", "member.cpp"): True,
    ("a.cpp", "call.cpp"): False,
    ("call.cpp", "a.cpp"): True,
    ("a.cpp", "header.cpp"): False,
    ("also.cpp", "header.cpp"): True,
    ("also.cpp", "same.cpp"): True,
    ("also.cpp", "different.cpp"): False,
    ("also.cpp", "outside.cpp"): False,
    ("directive.cpp", "member.cpp"): False,
    ("member.cpp", "directive.cpp"): True,
}

failed = False
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for text, names in OWN.items():
        (folder / "own.cpp").write_text(text)
        found = unity_groups.File(folder / "own.cpp").own
        if found != names:
            failed = True
            print(f"{text}\n  found {sorted(found)} instead of {sorted(names)}")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for pair, right in PAIRS.items():
        paths = [folder / name for name in pair]
        together = len(unity_groups.groups(unity_groups.Sources([]), paths, 8)) == 1
        if together != right:
            failed = True
            print(f"{' and '.join(pair)} are {'' if together else 'not '}put together")
sys.exit(failed)
