"""A large pool on local workers against one process: python -m benchmarks.large.

Rows are made on the workers, and by the same recipe in this process. Beside each time stand the
seconds of the processor: on a machine with other work to do, they say what it would be without. The
last table is a model, not a measurement: what was measured here, scaled to more rows and workers.
"""

import argparse
import os
import time

import numpy as np

from fastal import FixedBudget, GaussianProcess, learn

FEATURES = 4
PIECE = 250_000

# Of the model: what one link between machines carries, and a question and its answer, with Dask.
BYTES_PER_SECOND = 1.0e9
ROUND_TRIP = 4e-3

# Columns that come at a time, and bytes per row of them: see docs/scale.md.
CHUNK, CHUNK_BYTES = 256, 2112

PANEL = 64


def piece(number, rows):
    return np.random.default_rng([0, number]).normal(size=(rows, FEATURES))


def sizes(n):
    return [min(PIECE, n - low) for low in range(0, n, PIECE)]


def settings(labels):
    return {
        "gp": GaussianProcess(1.0, 0.01),
        "criterion": FixedBudget(labels),
        "max_labels": labels,
        "seed": 0,
    }


def processor():
    """Return the seconds of the processor that this process has used."""
    used = os.times()
    return used.user + used.system


def measured(call, everybody=lambda: [processor()]):
    """Return what a call gives, its seconds, and those of each processor."""
    before, start = everybody(), time.perf_counter()
    found = call()
    seconds = time.perf_counter() - start
    used = [after - one for one, after in zip(before, everybody(), strict=True)]
    return found, seconds, used


def one_process(n, labels, threads):
    X = np.vstack([piece(number, rows) for number, rows in enumerate(sizes(n))])
    y = np.sin(X).sum(axis=1)
    learn(X[:5000], y[:5000], **settings(labels))  # compile
    run, seconds, used = measured(lambda: learn(X, y, threads=threads, **settings(labels)))
    return run, seconds, used[0], y


def lazy_pool(n):
    """Return the pool as a dask array, which nobody has made yet."""
    import dask
    import dask.array as da

    make = dask.delayed(piece)
    parts = [
        da.from_delayed(make(number, rows), (rows, FEATURES), float)
        for number, rows in enumerate(sizes(n))
    ]
    return da.concatenate(parts)


def on_workers(n, counts, workers, y):
    """Return for each number of labels: the run, seconds, and those of the client and workers."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, direct_to_workers=True) as client,
    ):

        def everybody():
            return [processor(), *client.run(processor).values()]

        client.run(os.getpid)  # all of them are there
        X = lazy_pool(n)
        learn(X[:5000], y[:5000], **settings(max(counts)))  # compile
        return [
            measured(lambda labels=labels: learn(X, y, **settings(labels)), everybody)
            for labels in counts
        ]


def model(n, workers, labels, per_row, per_entry, rounds, features=FEATURES):
    """Return seconds of computing and of waiting; extrapolated from one worker's measured speed.

    per_row : seconds to get and fill a chunk's memory, and to read a row.  per_entry : of T^2.
    """
    rows = n / workers
    computing = rows * (per_row * -(-labels // CHUNK) + per_entry * labels**2)
    here = 8 * (np.linspace(0, labels, max(2, int(rounds))) + features + 3)  # bytes per candidate
    received = np.maximum(8e6, 4096 * here).sum()
    sent = workers * 8 * PANEL * np.arange(0, labels, PANEL).sum() * 1.5
    waiting = rounds * ROUND_TRIP + (received + sent) / BYTES_PER_SECOND
    return computing, waiting


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--labels", type=int, default=128)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    n, labels, crew = args.points, args.labels, args.workers
    print(f"{n:,} points of {FEATURES} features, {labels} labels")
    for threads in (1, crew):
        run, seconds, used, y = one_process(n, labels, threads)
        print(
            f"one process, {threads} thread(s): {seconds:.1f} s; processor {used:.1f} s", flush=True
        )
        if threads == 1:
            alone = seconds, used
    counts = [1, max(2, labels // 2), labels]
    found = on_workers(n, counts, crew, y)
    for count, (_, seconds, used) in zip(counts, found, strict=True):
        print(
            f"{crew} workers, {count} label(s): {seconds:.1f} s; processor of the client "
            f"{used[0]:.1f} s, of the busiest worker {max(used[1:]):.1f} s"
        )
    spread, seconds, used = found[-1]
    same = np.array_equal(run.indices, spread.indices)
    print(f"the same labels: {same}; bounds differ by {np.abs(run.bounds - spread.bounds).max():g}")
    print(
        f"one process with one thread over {crew} workers: {alone[0] / seconds:.2f} in time, "
        f"{alone[1] / (used[0] + max(used[1:])):.2f} in the processor's time of client and worker"
    )
    selection = spread._learner._selection
    rounds = selection.rounds
    print(
        f"{rounds} rounds; per round {selection.bytes_received / rounds / 1e6:.2f} MB from the "
        f"workers together, {selection.bytes_sent / rounds / 1e6:.3f} MB to them"
    )
    half, whole = max(found[1][2][1:]), max(found[2][2][1:])
    per_entry = max(0.0, (whole - half) / (n / crew * (counts[2] ** 2 - counts[1] ** 2)))
    per_row = max(0.0, whole / (n / crew) - per_entry * counts[2] ** 2)
    print(
        "extrapolated, not measured: a worker's processor as here, "
        f"{per_row * 1e6:.2f} us per row and {CHUNK} labels and {per_entry * 1e9:.3f} ns times "
        f"labels^2; rounds in proportion to the labels; {BYTES_PER_SECOND:.0e} bytes per second "
        f"into the client, {1e3 * ROUND_TRIP:.0f} ms per question"
    )
    for more, many, count in [(10**8, 64, 128), (10**8, 64, 1000)]:
        computing, waiting = model(more, many, count, per_row, per_entry, rounds * count / labels)
        memory = CHUNK_BYTES * more / many * -(-count // CHUNK) / 1e9
        print(
            f"  {more:.0e} points, {many} workers, {count} labels: {computing:.0f} s of computing, "
            f"{waiting:.1f} s of waiting, {memory:.1f} GB per worker"
        )


if __name__ == "__main__":
    main()
