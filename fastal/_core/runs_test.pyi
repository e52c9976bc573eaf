import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]
_Ints = NDArray[np.int64]

def rising_pairs(x: _Doubles, work: _Doubles) -> int: ...
def test_one(
    x: _Doubles,
    cut: int,
    cutoff: float,
    alternative: int,
    method: int,
) -> int | tuple[float, float, int, int, int, float]: ...
def test_rows(
    x: _Doubles,
    cut: int,
    cutoffs: _Doubles,
    alternative: int,
    method: int,
    work: _Doubles,
    floats: _Doubles,
    counts: _Ints,
) -> None: ...
