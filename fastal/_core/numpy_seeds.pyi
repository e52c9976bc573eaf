import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]

def run_words(seed: int, runs: _Ints, words: NDArray[np.uint64]) -> None: ...

class Shuffler:
    def __init__(self, seed: int) -> None: ...
    def shuffle(self, rows: _Ints) -> None: ...
