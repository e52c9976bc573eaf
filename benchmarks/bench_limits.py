"""The machine's own limits: other figures can be read as shares of what is possible."""

from . import _limits


def track_dgemm():
    """No target: a product of matrices, one thread."""
    return _limits.dgemm_flops() / 1e9


track_dgemm.unit = "Gflop/s"


def track_dgemv():
    """No target: a product of matrix and vector from the cache, one thread."""
    return _limits.dgemv_bytes() / 1e9


track_dgemv.unit = "GB/s"


def track_read_bandwidth():
    """No target: a sum over memory, one thread."""
    return _limits.read_bytes() / 1e9


track_read_bandwidth.unit = "GB/s"


def track_empty_python_call():
    """No target: a Python function of one argument that does nothing."""
    return _limits.empty_call() * 1e9


track_empty_python_call.unit = "ns"
