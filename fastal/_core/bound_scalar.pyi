import numpy as np
from numpy.typing import NDArray

_Doubles = NDArray[np.float64]

def gp_kl(mean: float, var: float, y: float, noise: float) -> float: ...
def gp_kl_rows(posteriors: _Doubles, out: _Doubles) -> None: ...
