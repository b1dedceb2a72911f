"""Test output in TAP, which `make check` counts: ok(...) a case, finish() at the end gives the exit code."""

import os
import sys

RESULTS = []


def ok(passed, label, detail=""):
    RESULTS.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(RESULTS)} - {label}{': ' + detail if detail else ''}", flush=True)


def skip(label, reason):
    RESULTS.append(True)
    print(f"ok {len(RESULTS)} - {label} # SKIP {reason}", flush=True)


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def finish():
    print(f"1..{len(RESULTS)}")
    return 0 if RESULTS and all(RESULTS) else 1


def import_numpy():
    """NumPy, or the whole test is skipped. One thread: the products here are too small for more."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import numpy
    except ModuleNotFoundError:
        skip_all("NumPy is not installed (tests/requirements.txt)")
    return numpy
