"""A large pool on two local workers against one process: python -m benchmarks.large.

Rows are made on the workers, and by the same recipe in this process. The last table is a model, not
a measurement: what was measured here, scaled to more rows and workers.
"""

import argparse
import time

import numpy as np

from fastal import FixedBudget, GaussianProcess, learn

FEATURES = 4
PIECE = 250_000

# Of the model: what one link between machines carries, and a question and its answer, with Dask.
BYTES_PER_SECOND = 1.0e9
ROUND_TRIP = 4e-3


def piece(number, rows):
    return np.random.default_rng([0, number]).normal(size=(rows, FEATURES))


def sizes(n):
    return [min(PIECE, n - low) for low in range(0, n, PIECE)]


def label(index, x):
    return float(np.sin(x).sum())


def settings(labels):
    return {
        "gp": GaussianProcess(1.0, 0.01),
        "stopper": FixedBudget(labels),
        "max_labels": labels,
        "seed": 0,
    }


def one_process(n, labels, threads):
    X = np.vstack([piece(number, rows) for number, rows in enumerate(sizes(n))])
    y = np.sin(X).sum(axis=1)
    learn(X[:5000], y[:5000], **settings(labels))  # compile
    start = time.perf_counter()
    run = learn(X, y, threads=threads, **settings(labels))
    return run, time.perf_counter() - start, y


def on_workers(n, labels, workers, y):
    import dask
    import dask.array as da
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        make = dask.delayed(piece)
        parts = [
            da.from_delayed(make(number, rows), (rows, FEATURES), float)
            for number, rows in enumerate(sizes(n))
        ]
        X = da.concatenate(parts)
        learn(X[:5000], y[:5000], **settings(labels))  # compile
        start = time.perf_counter()
        learn(X, y, **settings(1) | {"max_labels": 1})
        reading = time.perf_counter() - start
        start = time.perf_counter()
        run = learn(X, y, **settings(labels))
        return run, time.perf_counter() - start, reading


def model(n, workers, labels, per_entry, rounds, candidates=4096):
    """Return seconds of computing and of waiting; extrapolated from one worker's measured speed."""
    computing = per_entry * n / workers * labels**2
    sent = rounds * candidates * 8 * labels / 2  # rows of V have half of the entries on average
    panels = workers * 8 * labels**2 / 2  # rows of L, to every worker
    waiting = rounds * ROUND_TRIP * 2 + (sent + panels) / BYTES_PER_SECOND
    return computing, waiting


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--labels", type=int, default=128)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    n, labels = args.points, args.labels
    print(f"{n:,} points of {FEATURES} features, {labels} labels")
    for threads in (1, args.workers):
        run, seconds, y = one_process(n, labels, threads)
        print(f"one process, {threads} thread(s): {seconds:.1f} s", flush=True)
    spread, there, reading = on_workers(n, labels, args.workers, y)
    same = np.array_equal(run.indices, spread.indices)
    gap = np.abs(run.bounds - spread.bounds).max()
    selection = spread._learner._selection
    print(
        f"{args.workers} workers: {there:.1f} s, of which reading rows {reading:.1f} s; the same "
        f"labels: {same}; bounds differ by {gap:.1g}"
    )
    print(
        f"{selection.rounds} rounds, {selection.bytes_received / selection.rounds / 1e6:.2f} MB "
        f"received per round"
    )
    per_entry = (there - reading) * args.workers / (n * labels**2)
    print("extrapolated, not measured; as if all computing grew with the square of the labels:")
    for more, crew, count in [(10**8, 64, 128), (10**8, 64, 1000)]:
        computing, waiting = model(more, crew, count, per_entry, selection.rounds * count / labels)
        memory = 2112 * more / crew * -(-count // 256) / 1e9
        print(
            f"  {more:.0e} points, {crew} workers, {count} labels: {computing:.0f} s of computing, "
            f"{waiting:.1f} s of waiting, {memory:.1f} GB per worker"
        )


if __name__ == "__main__":
    main()
