"""The experiments of the paper, as a whole; they need its data sets."""

from time import perf_counter

from fastal import datasets

from ._inside import inside

DATASETS, CRITERIA, campaigns, problem, table1 = (
    inside(name, "fastal.paper")
    for name in ("DATASETS", "CRITERIA", "campaigns", "problem", "table1")
)


class Table1:
    params = (["artificial", "all"], [2, 100])
    param_names = ("datasets", "runs")
    timeout = 600

    def setup(self, sets, runs):
        self.sets = DATASETS if sets == "all" else (sets,)
        self.criteria = CRITERIA if sets == "all" else ("ground_truth", "proposed")
        try:
            for name in self.sets:
                if name in datasets.SETS:
                    datasets.load(name)
        except OSError as error:  # neither there nor to be downloaded
            raise NotImplementedError(str(error)) from None
        campaigns(problem("artificial"), 2, jobs=2)

    def _seconds(self, criteria, runs):
        begin = perf_counter()
        table1(self.sets, criteria, runs=runs, jobs=-1)
        return perf_counter() - begin

    def track_seconds_of_the_whole_table(self, sets, runs):
        """Below 60 with all data sets and 100 runs on two cores: fits, five criteria."""
        return self._seconds(self.criteria, runs)

    track_seconds_of_the_whole_table.unit = "seconds"

    def track_seconds_of_the_proposed_row(self, sets, runs):
        """Below 15 with all data sets and 100 runs on two cores: fits and test errors."""
        return self._seconds(["proposed"], runs)

    track_seconds_of_the_proposed_row.unit = "seconds"
