# SPDX-License-Identifier: MIT
"""Bounds on counts of samples, from the number of samples: chance alone exceeds each in at most 1 of 10 000 runs.

The model: each of n samples is in a function with probability p, independent of the others, so their count has a
binomial distribution. Samples of a profiler are not independent: a timer takes them at equal distances, and the programs
of the tests run the same functions again and again. If a function's calls are shorter than the distance, or take the
same time each, the counts vary less than binomial ones, so the bounds hold. If a phase of the program with many samples
varies as a whole (a compilation, a garbage collection), the samples of one phase are one draw: `run` is how many samples
a phase has, and n samples are n / run draws.

What changes p itself, such as a compiler that is still at work, or loops whose rounds do not take the same time, is not
chance: callers give the range in which p is.
"""
import math

CHANCE = 1e-4


def log_choose(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def binomial(n, k, p):
    """The probability of exactly k of n."""
    if p in (0, 1):
        return float(k == n * p)
    return math.exp(log_choose(n, k) + k * math.log(p) + (n - k) * math.log1p(-p))


def at_most(n, k, p):
    """The probability of k of n or fewer."""
    return math.fsum(binomial(n, i, p) for i in range(min(k, n) + 1)) if k >= 0 else 0.0


def least(n, p, chance=CHANCE):
    """The smallest count of n samples that is no surprise if each has the probability p: fewer have at most `chance`."""
    total, k = 0.0, 0
    while k <= n and (total := total + binomial(n, k, p)) <= chance:
        k += 1
    return k


def most(n, p, chance=CHANCE):
    """The largest one."""
    return n - least(n, 1 - p, chance)


def draws(count, n, run):
    """The same share of so many independent draws. Rounded to the mean of p = 1/2, which is the milder way."""
    n_draws = n / run
    whole = max(1, math.floor(n_draws))
    return round(count * whole / n) if n else 0, whole if n else 0


def is_share(count, n, low, high=None, run=1, chance=CHANCE):
    """Whether the count fits a probability between `low` and `high`, by default `low`. Either side fails by half of
    `chance`."""
    count, n = draws(count, n, run) if run > 1 else (count, n)
    return least(n, low, chance / 2) <= count <= most(n, low if high is None else high, chance / 2)


def is_at_least(count, n, share, chance=CHANCE):
    """Whether the count fits a probability of `share` or more."""
    return count >= least(n, share, chance)


def is_at_most(count, n, share, chance=CHANCE):
    return count <= most(n, share, chance)


def shares_agree(count, n, other_count, other_n, chance=CHANCE):
    """Whether two counts fit one probability, whatever it is: Fisher's exact test, with half of `chance` on either side."""
    both = count + other_count

    def probability(k):
        return math.exp(log_choose(n, k) + log_choose(other_n, both - k) - log_choose(n + other_n, both))

    first, last = max(0, both - other_n), min(n, both)
    below = math.fsum(map(probability, range(first, count + 1)))
    above = math.fsum(map(probability, range(count, last + 1)))
    return min(below, above) > chance / 2


def distributions_agree(counts, others, chance=CHANCE):
    """Whether two Counters fit one distribution: the share of each key agrees, with an equal part of `chance`."""
    keys = counts.keys() | others.keys()
    n, other_n = sum(counts.values()), sum(others.values())
    return all(shares_agree(counts.get(key, 0), n, others.get(key, 0), other_n, chance / len(keys)) for key in keys)
