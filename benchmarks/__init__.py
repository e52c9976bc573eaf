"""Benchmarks for airspeed velocity (asv); `smoke.py` runs each of them once."""
