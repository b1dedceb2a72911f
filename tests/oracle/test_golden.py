#!/usr/bin/env python3
"""The golden files are what tests/golden/make.py makes today, and the tiny models have the digests that they name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

import make  # noqa: E402

if __name__ == "__main__":
    sys.exit(make.main(["--check"]))
