# SPDX-License-Identifier: MIT
"""tests/support/chance.py against exact sums of fractions, and tests/support/trying.py: what may be tried again."""
import concurrent.futures
import fractions
import math
import pathlib
import subprocess
import sys

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path.insert(0, str(SUPPORT))
import chance
from trying import TryAgain, results_of, try_again

SHARES = [fractions.Fraction(*pair) for pair in ((1, 100), (1, 5), (1, 2), (3, 4), (99, 100))]


def exactly(n, k, p):
    return math.comb(n, k) * p ** k * (1 - p) ** (n - k)


def check_binomial():
    for n in (1, 2, 20, 150):
        for p in SHARES:
            exact = [exactly(n, k, p) for k in range(n + 1)]
            for k in range(n + 1):
                assert math.isclose(chance.binomial(n, k, float(p)), exact[k], rel_tol=1e-9), (n, k, p)
            for limit in (fractions.Fraction(1, 10_007), fractions.Fraction(1, 19)):
                least = chance.least(n, float(p), float(limit))
                assert sum(exact[:least]) <= limit < sum(exact[:least + 1]), (n, p, least)
                most = chance.most(n, float(p), float(limit))
                assert sum(exact[most + 1:]) <= limit < sum(exact[most:]), (n, p, most)
    assert (chance.least(0, 0.5), chance.most(0, 0.5)) == (0, 0)
    assert (chance.least(10, 1), chance.most(10, 1), chance.least(10, 0), chance.most(10, 0)) == (10, 10, 0, 0)


def check_bounds():
    """Of the shares of a program in three functions: a wrong one is seen, and a bound holds the more the more samples."""
    assert chance.is_share(1500, 3000, 0.5) and not chance.is_share(1350, 3000, 0.5) and not chance.is_share(1650, 3000, 0.5)
    assert chance.is_share(45, 100, 0.5) and not chance.is_share(30, 100, 0.5)
    assert chance.is_share(1380, 3000, 0.48, 0.52) and not chance.is_share(1300, 3000, 0.48, 0.52)
    assert chance.is_share(1350, 3000, 0.5, run=10) and not chance.is_share(1000, 3000, 0.5, run=10)
    assert chance.is_share(0, 0, 0.5)
    assert chance.is_at_least(495, 500, 0.99) and chance.is_at_least(486, 500, 0.99) and not chance.is_at_least(480, 500, 0.99)
    assert chance.is_at_most(10, 1000, 0.01) and not chance.is_at_most(30, 1000, 0.01)
    widths = [chance.most(n, 0.3) / n - chance.least(n, 0.3) / n for n in (50, 500, 5000)]
    assert widths == sorted(widths, reverse=True), widths


def fisher(count, n, other_count, other_n):
    both = count + other_count
    exact = {k: fractions.Fraction(math.comb(n, k) * math.comb(other_n, both - k), math.comb(n + other_n, both))
             for k in range(max(0, both - other_n), min(n, both) + 1)}
    return min(sum(p for k, p in exact.items() if k <= count), sum(p for k, p in exact.items() if k >= count))


def check_agreement():
    for n, other_n in ((10, 10), (30, 80), (200, 150)):
        for count in range(0, n + 1, max(1, n // 10)):
            for other in range(0, other_n + 1, max(1, other_n // 10)):
                expected = fisher(count, n, other, other_n) > chance.CHANCE / 2
                assert chance.shares_agree(count, n, other, other_n) == expected, (count, n, other, other_n)
    assert chance.distributions_agree({"a": 500, "b": 300, "c": 200}, {"a": 260, "b": 140, "c": 99, "d": 1})
    assert not chance.distributions_agree({"a": 500, "b": 300, "c": 200}, {"a": 260, "b": 40, "c": 200})
    assert not chance.distributions_agree({"a": 500}, {"a": 250, "b": 250})


def said(*lines):
    """Status and output of a program."""
    program = f"import sys\nsys.path.insert(0, {str(SUPPORT)!r})\nfrom trying import *\n" + "\n".join(lines)
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("try again: ")]


def check_trying():
    assert said("require_samples(20, 20, 'node')") == (0, [])
    assert said("require_samples(19, 20, 'node')") == (1, ["try again: node: 19 samples, not 20"])
    assert said("require(False, ('two\\nlines', 7))") == (1, [r"try again: ('two\nlines', 7)"])
    assert said("try_again('two\\nlines')") == (1, ["try again: two lines"])
    assert said("assert False, 'wrong'") == (1, [])
    # A failure of the product hides behind no line.
    assert said("try:", "    assert False, 'wrong'", "finally:", "    try_again('late')") == (1, [])
    assert said("try:", "    try_again('late')", "finally:", "    assert False, 'wrong'") == (1, [])
    assert said("try:", "    {}['x']", "except KeyError:", "    try_again('late')") == (1, ["try again: late"])

    def wrong():
        raise ValueError("wrong")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for works, expected in (((lambda: try_again("late"), wrong), ValueError), ((int, lambda: try_again("late")), TryAgain)):
            try:
                results_of([pool.submit(work) for work in works])
            except expected:
                continue
            raise AssertionError("nothing was raised")
        assert results_of([pool.submit(int)]) == [0]


check_binomial()
check_bounds()
check_agreement()
check_trying()
print("the bounds are those of exact sums; only what chance or time explains may be tried again")
