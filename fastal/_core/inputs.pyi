import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]

def scale_rows(X: _Doubles, per_length: float | _Doubles, out: _Doubles) -> bool: ...
def farthest(y: _Doubles, center: float) -> int: ...
