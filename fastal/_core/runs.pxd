# What other Cython code may cimport:
#     from fastal._core.runs cimport Streams, streams_free, streams_new_runs, streams_push
#
# The functions are documented where they are declared: state.pxd and distribution.pxd.

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
from fastal._core.state cimport (
    streams_free,
    streams_left,
    streams_new_movement,
    streams_new_runs,
    streams_push,
    streams_reset,
    streams_stopped_at,
)

from fastal._core.state cimport Arena as Streams
