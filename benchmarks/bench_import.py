"""How long the first import takes, in a fresh interpreter."""

import statistics
import subprocess
import sys


def timeraw_import_fastal():
    return "import fastal"


def timeraw_import_runs_test():
    # `import fastal` postpones the work; this is what a first use of the runs test waits for.
    return "from fastal import runs_test"


def timeraw_import_numpy():
    return "import numpy"


class ImportRatio:
    """Import time over that of NumPy, each the median of interleaved fresh interpreters."""

    params = (["import fastal", "from fastal import runs_test"],)
    param_names = ("statement",)
    repetitions = 9

    def track_import_ratio(self, statement):
        times = {statement: [], "import numpy": []}
        for _ in range(self.repetitions):
            for code, seconds in times.items():
                seconds.append(_seconds(code))
        return statistics.median(times[statement]) / statistics.median(times["import numpy"])

    track_import_ratio.unit = "ratio"


def _seconds(statement):
    code = f"from time import perf_counter as t; t0 = t(); {statement}; print(t() - t0)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)
