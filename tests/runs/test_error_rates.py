"""What the levels mean, by simulation; `python -m benchmarks.error_rates` prints the figures."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "error_rates", Path(__file__).parents[2] / "benchmarks" / "error_rates.py"
)
rates = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rates)


def check_p_values(streams, length):
    shares = rates.p_value_shares(streams, length)
    for level, share in zip(rates.LEVELS, shares, strict=True):
        exact = rates.attained(level, length)
        assert exact <= level
        # not above the level, and just what the distribution says; 4.5 standard errors
        assert abs(share - exact) <= 4.5 * rates.standard_error(exact, streams)


def check_false_stops(streams):
    for method, documented in rates.DOCUMENTED.items():
        shares = rates.false_stops(streams, alpha=0.001, method=method, fall=False)
        for share, percent in zip(shares, documented, strict=True):
            # the documented value is rounded to its last digit
            rounding = 0.00005 if percent < 1 else 0.0005
            noise = 4.5 * rates.standard_error(percent / 100, streams)
            assert abs(share - percent / 100) <= rounding + noise


def check_sequential(streams, horizons):
    for horizon in horizons:
        for fall in (False, True):
            (share,) = rates.false_stops(
                streams, (horizon,), alpha=0.01, sequential=True, horizon=horizon, fall=fall
            )
            assert share <= 0.01 + 4.5 * rates.standard_error(0.01, streams)
            assert share >= 0.008  # and not for nothing


def check_shifts(streams):
    for before, stop in rates.CLEAN_DROPS.items():
        share, median = rates.shift(streams, before, 10.0, alpha=0.001)
        assert share > 0.98
        assert abs(median - stop) <= 1
    masked, _ = rates.shift(streams, 5, 10.0, alpha=0.001)
    assert masked < 0.5


def test_small():
    check_p_values(20_000, 20)
    check_false_stops(4_000)
    check_shifts(3_000)


def test_a_planted_error_is_seen(monkeypatch):
    monkeypatch.setattr(rates, "attained", lambda level, length: 1.3 * level)
    with pytest.raises(AssertionError):
        check_p_values(20_000, 20)
    monkeypatch.setitem(rates.DOCUMENTED, "exact", (1.5, 2.2, 2.9, 4.4))
    with pytest.raises(AssertionError):
        check_false_stops(4_000)


@pytest.mark.long
@pytest.mark.parametrize("length", rates.LENGTHS)
def test_a_million_p_values(length):
    check_p_values(1_000_000, length)


@pytest.mark.long
def test_false_stops_and_power():
    check_false_stops(100_000)
    check_sequential(100_000, rates.HORIZONS)
    check_shifts(10_000)
