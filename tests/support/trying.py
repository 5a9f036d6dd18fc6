# SPDX-License-Identifier: MIT
"""Failures of a test that say nothing about the product: too few samples, or a state that was not reached in time.

scripts/run_tests.py runs a failed test again, up to twice, if the last line of its output is `try again: REASON`.
Otherwise the product has failed, and the test is red at once: a crash, a wrong name, a status, a message, a file that
is left. These stay assertions, and so does everything in doubt.

A shell test prints the line itself and exits with 1. A C++ test waits for states without a limit; ctest's limit ends it.
"""
import sys


class TryAgain(Exception):
    """Has the reason as its message. An uncaught one ends the test with status 1 and the line."""


def try_again(reason):
    raise TryAgain(reason)


def require(condition, reason):
    """For what depends on chance or time. `reason` may be a tuple of values, as in an assertion."""
    if not condition:
        raise TryAgain(reason)


def require_samples(count, least, what):
    """`what`: where the samples, or the frames, are too few."""
    require(count >= least, f"{what}: {count} samples, not {least}")


def results_of(jobs):
    """The results of the futures, when all are done. If one saw the product fail, that is raised, not a TryAgain."""
    errors = [error for job in jobs if (error := job.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, TryAgain)):
        raise error
    return [job.result() for job in jobs]


def is_about_the_product(error):
    """Whether an assertion failed before, such as one whose cleanup ended in a TryAgain."""
    while error is not None:
        if isinstance(error, AssertionError):
            return True
        error = error.__context__
    return False


def report(kind, error, trace, otherwise=sys.excepthook):
    otherwise(kind, error, trace)
    if isinstance(error, TryAgain) and not is_about_the_product(error):
        print("try again:", " ".join(str(error).split())[:500], flush=True)


sys.excepthook = report
