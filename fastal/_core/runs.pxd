# What other Cython code may cimport:
#     from fastal._core.runs cimport Tracker, tracker_new, tracker_push, tracker_free
#
# The functions are documented where they are declared: tracker.pxd, still.pxd and distribution.pxd.

from fastal._core.distribution cimport (
    AUTO,
    EXACT,
    GREATER,
    LESS,
    NORMAL,
    TWO_SIDED,
    Alternative,
    Method,
    normal_quantile,
    runs_cdf,
    runs_logcdf,
    runs_logpmf,
    runs_logsf,
    runs_p_value,
    runs_pmf,
    runs_sf,
)
from fastal._core.tracker cimport (
    RunsRule,
    RunsTracker,
    Tracker,
    level_factor,
    tracker_fell,
    tracker_free,
    tracker_n_runs,
    tracker_new,
    tracker_new_with,
    tracker_p_value,
    tracker_push,
    tracker_reserve,
    tracker_reset,
    tracker_stopped_at,
)

from fastal._core.still cimport (
    Still,
    StillTracker,
    still_free,
    still_left,
    still_level,
    still_new,
    still_push,
    still_reserve,
    still_reset,
    still_stopped_at,
)

ctypedef RunsRule Rule      # its name in version 0.1
