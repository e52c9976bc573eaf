"""Benchmarks for airspeed velocity (asv); `smoke.py` runs each of them once."""

import sys
from pathlib import Path

# the slow twins
sys.path.append(str(Path(__file__).parents[1] / "tests"))
