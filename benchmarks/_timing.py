"""Ratios measured in one run: both sides in turn, the best of several, so that noise cancels."""

import statistics
from time import perf_counter


def best(call, rounds=7, seconds=0.02):
    """Return the least time of one call, over rounds of at least `seconds`."""
    return _best_of([call], rounds, seconds)[0]


def ratio(slow, fast, rounds=7, seconds=0.02):
    """Return how many times longer `slow` takes than `fast`."""
    times = _best_of([slow, fast], rounds, seconds)
    return times[0] / times[1]


def ratio_of_pairs(slow, fast, pairs=15, clock=perf_counter, number=1):
    """Return the median of how many times longer `slow` takes, each once a pair, in turns.

    For calls that take half a second and both cores: one of them rarely meets a quiet moment, and
    the least times of two of them not the same one. With `process_time` as the clock, for calls of
    one thread, what other processes take does not count. `number`: calls in a row.
    """
    ratios = []
    for i in range(pairs):
        times = {}
        for call in (slow, fast) if i % 2 else (fast, slow):
            start = clock()
            for _ in range(number):
                call()
            times[call] = clock() - start
        ratios.append(times[slow] / times[fast])
    return statistics.median(ratios)


def _best_of(calls, rounds, seconds):
    numbers = []
    for call in calls:
        call()
        start = perf_counter()
        call()
        numbers.append(max(1, int(seconds / max(perf_counter() - start, 1e-9))))
    times = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = perf_counter()
            for _ in range(numbers[i]):
                call()
            times[i] = min(times[i], (perf_counter() - start) / numbers[i])
    return times
