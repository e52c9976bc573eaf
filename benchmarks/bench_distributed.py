"""A pool on the workers of a local Dask cluster, beside the same run in this process."""

import time

import numpy as np

from fastal import FixedBudget, GaussianProcess, learn

from ._peers import peer
from ._timing import ratio_of_pairs


def _settings(labels):
    return {
        "gp": GaussianProcess(1.0, 0.01),
        "criterion": FixedBudget(labels),
        "max_labels": labels,
        "seed": 0,
    }


def _seconds_of_processor():
    return time.process_time()  # `os.times` counts in hundredths: small pools take less


class _OnWorkers:
    """A pool of N points on two workers, and the same one here."""

    timeout = 300
    processes = True

    def _begin(self, N, cluster=True):
        dask, array = peer("distributed"), peer("dask.array")
        self.labels = 32 if N <= 5_000 else 128
        self.there = array.random.default_rng(0).normal(size=(N, 4), chunks=(max(1, N // 8), 4))
        self.here = self.there.compute()
        self.y = np.sin(self.here).sum(axis=1)
        self._here(3)  # compile
        if not cluster:
            return
        self.cluster = dask.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=0,
            processes=self.processes,
            dashboard_address=":0",
        )
        self.client = dask.Client(self.cluster, direct_to_workers=True)
        self.client.wait_for_workers(2)
        self._there(3)  # both of them load what is compiled

    def _end(self):
        if hasattr(self, "client"):
            self.client.close()
            self.cluster.close()

    def _here(self, labels):
        return learn(self.here, self.y, threads=1, **_settings(labels))

    def _there(self, labels):
        return learn(self.there, self.y, **_settings(labels))


class Workers(_OnWorkers):
    params = (["one process", "two workers"], [5_000, 500_000])
    param_names = ("implementation", "N")

    def setup(self, implementation, N):
        self._begin(N, implementation == "two workers")

    def teardown(self, implementation, N):
        self._end()

    def time_labels(self, implementation, N):
        (self._here if implementation == "one process" else self._there)(self.labels)


class WorkersRatios(_OnWorkers):
    params = ([5_000, 500_000],)
    param_names = ("N",)

    def setup(self, N):
        self._begin(N)
        same = self._here(self.labels).indices == self._there(self.labels).indices
        assert same.all()

    def teardown(self, N):
        self._end()

    def track_one_process_over_two_workers(self, N):
        """At least 1.2 at 500,000 points, where workers make their rows anew in every run."""
        here, there = (lambda: self._here(self.labels)), (lambda: self._there(self.labels))
        return ratio_of_pairs(here, there, pairs=3)

    track_one_process_over_two_workers.unit = "ratio"

    def track_busiest_worker_over_one_process(self, N):
        """At most 0.7 at 500,000 points, in seconds of the processor: one half, and the rounds."""
        before = _seconds_of_processor()
        self._here(self.labels)
        alone = _seconds_of_processor() - before
        used = self.client.run(_seconds_of_processor)
        self._there(self.labels)
        after = self.client.run(_seconds_of_processor)
        return max(after[worker] - used[worker] for worker in used) / alone

    track_busiest_worker_over_one_process.unit = "ratio"


class Rounds(_OnWorkers):
    """Counts, not times: the workers may be threads."""

    params = ([5_000, 500_000],)
    param_names = ("N",)
    processes = False

    def setup(self, N):
        self._begin(N)

    def teardown(self, N):
        self._end()

    def track_rounds(self, N):
        """At most 20 for 128 labels of 500,000 points: questions to all workers."""
        return self._there(self.labels)._learner._selection.rounds

    track_rounds.unit = "rounds"

    def track_bytes_per_round(self, N):
        """At most 8.1e6 up to 128 labels, to and from all workers together."""
        selection = self._there(self.labels)._learner._selection
        return (selection.bytes_sent + selection.bytes_received) / selection.rounds

    track_bytes_per_round.unit = "bytes"

    def track_exponent_of_bytes_over_points(self, N):
        """At most 0.5, up to 500,000 points: candidates do not grow with the pool, rounds do."""
        sizes, sent = [N // 2, N], []
        for n in sizes:
            run = learn(self.there[:n], self.y[:n], **_settings(self.labels))
            selection = run._learner._selection
            sent.append(selection.bytes_sent + selection.bytes_received)
        return float(np.log(sent[1] / sent[0]) / np.log(2.0))

    track_exponent_of_bytes_over_points.unit = "exponent"
