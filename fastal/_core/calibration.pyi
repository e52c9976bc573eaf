import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]
_Ints = NDArray[np.int64]

def least_p_values(
    bounds: _Doubles, weighted: bool, fall: bool, horizons: _Ints, out: _Doubles
) -> bool: ...
