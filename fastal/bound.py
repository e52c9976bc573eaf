"""The bound r_t from what any model knows, the constant C, and the PAC-Bayesian bounds.

``r_t`` is the Kullback-Leibler divergence of the posterior before a label from the one after it;
``r_t + C`` bounds how far the expected generalisation error can have moved (Theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core import bound_scalar
from fastal._types import Array

__all__ = [
    "alquier_bound",
    "bound_constant",
    "gaussian_kl",
    "gp_bounds",
    "gp_kl",
    "gp_prior_kl",
    "mcallester_bound",
]

# The arguments that describe a posterior and a label.
POSTERIOR = ("mean", "var", "y", "noise")

# SciPy and Numba are imported by the functions that need them: who only pushes bounds needs
# neither.


def _compile_first(mean: float, var: float, y: float, noise: float) -> float:
    """Put the compiled kernel into the place of this function, at the first call."""
    global _gp_kl_scalar
    from fastal._core.bound_array import gp_kl_scalar

    _gp_kl_scalar = gp_kl_scalar
    return gp_kl_scalar(mean, var, y, noise)


_gp_kl_scalar: Callable[[float, float, float, float], float] = _compile_first


def gp_kl(mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: ArrayLike) -> float | Array:
    """Divergence of a Gaussian-process posterior from the one with one more label, in O(1).

    This is ``r_t`` of the paper (Eq. 7, Appendix B) without the constant C::

        r_t = 1/2 [u - log(1 + u)] + 1/2 u d^2 / (var + noise),   u = var / noise,  d = y - mean

    Mean and variance are those of the function (without noise) at the new input **before** its
    label is added.

    Parameters
    ----------
    mean, var : array_like
        Posterior mean and variance at the new input.
    y : array_like
        The label.
    noise : array_like
        Variance of the noise of the label.

    Returns
    -------
    float or ndarray
        The divergence in nats; arrays broadcast against each other, four scalars give a float.

    Notes
    -----
    The relative error is below 1e-14 for any ratio ``var / noise``, also where ``u`` and
    ``log(1 + u)`` cancel. `fastal.jit.gp_kl` is the form for compiled callers.

    Examples
    --------
    >>> from fastal import gp_kl
    >>> round(gp_kl(mean=0.0, var=1.0, y=0.5, noise=0.01), 4)
    60.0687
    >>> gp_kl(mean=0.0, var=[1.0, 1e-9], y=0.5, noise=0.01).round(8)
    array([6.00686774e+01, 1.25000000e-06])
    """
    scalars: Any = (mean, var, y, noise)
    if set(map(type, scalars)) == {float}:
        m, s, label, w = scalars
        if 0.0 <= s < math.inf and 0.0 < w < math.inf and math.isfinite(m + label):
            return float(_gp_kl_scalar(m, s, label, w))
    arrays = [
        check.float_array(name, value) for name, value in zip(POSTERIOR, scalars, strict=True)
    ]
    shape = _common_shape(arrays)
    if shape == ():
        _check(*arrays)
        return float(_gp_kl_scalar(*(float(array) for array in arrays)))
    kernel, block = _array_kernel()
    out = np.empty(math.prod(shape))
    m, s, label, w = (_flat(array, shape, block) for array in arrays)
    # The kernel counts what is wrong; only if there is something, look for it.
    if kernel(m, s, label, w, out) > 0:
        _check(*arrays)
    return out.reshape(shape)


def _check(mean: Array, var: Array, y: Array, noise: Array) -> None:
    """Raise for the first argument that has an impossible value, and say where."""
    check.finite_array("mean", mean)
    check.not_negative("var", var)
    check.finite_array("y", y)
    check.all_positive("noise", noise)


def _common_shape(arrays: list[Array]) -> tuple[int, ...]:
    """Return the shape to which mean, var, y and noise are broadcast."""
    shapes = {array.shape for array in arrays} - {()}
    if len(shapes) == 1:
        return shapes.pop()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(f"{n} {a.shape}" for n, a in zip(POSTERIOR, arrays, strict=True))
        raise ValueError(f"`mean`, `var`, `y`, `noise` do not fit together: {listed}") from None


@cache
def _array_kernel() -> tuple[Any, int]:
    """Return the kernel for arrays and the size of its blocks: once, it needs Numba."""
    from fastal._core.bound_array import BLOCK, gp_kl_array

    return gp_kl_array, BLOCK


def _flat(array: Array, shape: tuple[int, ...], block: int) -> Array:
    """Return the array for the kernel: contiguous, writable, of full size or a block of copies."""
    size = math.prod(shape)
    if array.size == 1:
        return np.full(min(size, block), array.item())
    if array.shape == shape and array.flags.writeable:
        return array.reshape(-1)
    array = np.broadcast_to(array, shape)
    return np.require(array, requirements=["C", "W"]).reshape(-1)


def bound_constant(a: float, b: float) -> float:
    """Constant C of the bound for a loss with values in [a, b] (Theorem 1).

    ``C = 2 log((e^a + e^b) / 2) - a - b``, which is ``2 log cosh((b - a) / 2)``.

    Parameters
    ----------
    a, b : float
        Least and greatest value of the loss, in nats; ``a <= b``.

    Returns
    -------
    float
        The constant, 0 for ``a == b``.

    Notes
    -----
    C shifts every bound alike and therefore never changes a decision to stop. The paper sets
    ``b - a`` to the range of the targets; that has the unit of y, whereas the loss is in nats,
    and the Gaussian loss is not bounded at all. A bound with that constant is a convention, not a
    guarantee: on the paper's artificial data it held for nearly all labels at maximum variance
    (``fastal reproduce tightness`` counts them), and was exceeded by up to a few nats for some
    labels taken at random.

    Examples
    --------
    >>> from fastal.bound import bound_constant
    >>> round(bound_constant(0.0, 2.0), 6)
    0.867562
    >>> bound_constant(0.0, 10_000.0)
    9998.61370563888
    """
    a, b = check.real("a", a), check.real("b", b)
    if not (a <= b):
        raise ValueError(f"`a` must not exceed `b`, got a = {a} and b = {b}")
    z = 0.5 * b - 0.5 * a
    if z < 1.0:
        # cosh z = 1 + 2 sinh^2(z/2): does not cancel
        return 2.0 * math.log1p(2.0 * math.sinh(0.5 * z) ** 2)
    # cosh z = e^z (1 + e^-2z) / 2: does not overflow
    return 2.0 * (z - math.log(2.0) + math.log1p(math.exp(-2.0 * z)))


def _factor(name: str, cov: Array, jitter: float) -> Array:
    """Return the lower Cholesky factor of ``cov + jitter I``, or say what is wrong with it."""
    from scipy.linalg.lapack import dpotrf

    lower, info = dpotrf(cov + jitter * np.eye(len(cov)), lower=1)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"`{name}` is not positive definite: the leading minor of order {info} is not "
            f"positive (jitter = {jitter:g}); increase `jitter`"
        )
    return np.asarray(lower)


def gaussian_kl(
    mean0: ArrayLike,
    cov0: ArrayLike,
    mean1: ArrayLike,
    cov1: ArrayLike,
    *,
    jitter: float = 0.0,
) -> float:
    """Kullback-Leibler divergence KL(N0 || N1) of two Gaussian distributions.

    With the posteriors before and after a label on the union of their inputs this is the bound of
    any Gaussian model (Corollary 1).

    Parameters
    ----------
    mean0, mean1 : array_like, shape (k,)
        Means; a number for k = 1.
    cov0, cov1 : array_like, shape (k, k)
        Covariances, symmetric positive definite; a number for k = 1.
    jitter : float, optional
        Added to the diagonal of both covariances (the paper takes 0.01 for its experiments).

    Returns
    -------
    float
        The divergence in nats.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a covariance is not positive definite; the message names it and the leading minor.

    Notes
    -----
    Trace and log-determinant are taken together, as a sum of terms none of which is negative, so
    that the divergence of two nearly equal distributions keeps its digits.

    Examples
    --------
    >>> from fastal.bound import gaussian_kl
    >>> round(gaussian_kl([0, 0], [[1, 0], [0, 1]], [1, 0], [[2, 0], [0, 2]]), 6)
    0.443147
    """
    from scipy.linalg.lapack import dtrtrs

    from fastal._core.bound_array import gaussian_kl_sum

    m0 = check.vector("mean0", mean0)
    k = m0.size
    m1 = check.vector("mean1", mean1, k)
    c0 = check.covariance("cov0", cov0, k)
    c1 = check.covariance("cov1", cov1, k)
    jitter = check.zero_or_more("jitter", jitter)
    if k == 0:
        return 0.0
    L0, L1 = _factor("cov0", c0, jitter), _factor("cov1", c1, jitter)
    M, _ = dtrtrs(L1, L0, lower=1)
    delta, _ = dtrtrs(L1, m1 - m0, lower=1)
    contiguous = (np.ascontiguousarray(array) for array in (L0, L1, M, delta.reshape(k)))
    return float(gaussian_kl_sum(*contiguous))


def gp_bounds(cov: ArrayLike, y: ArrayLike, noise: ArrayLike, *, mean: ArrayLike = 0.0) -> Array:
    """All bounds ``r_1 .. r_T`` of a Gaussian process from one factor of its covariance.

    Serves the models of any library: what it takes are the prior covariance and mean at the
    labelled inputs under the present hyper-parameters, and the labels.

    Parameters
    ----------
    cov : array_like, shape (T, T)
        Prior covariance of the function at the labelled inputs, without noise, in the order in
        which the labels came.
    y : array_like, shape (T,)
        The labels in that order.
    noise : float or array_like, shape (T,)
        Noise variance, one for all labels or one each.
    mean : float or array_like, shape (T,), optional
        Prior mean at the labelled inputs, one for all labels or one each.

    Returns
    -------
    ndarray, shape (T,)
        The bound of each label given those before it, without the constant C; that of `gp_kl` for
        the posterior before the label.

    Raises
    ------
    numpy.linalg.LinAlgError
        If ``cov`` plus noise is not positive definite; the message names the label.

    See Also
    --------
    bounds_of : The same from the fitted models of some libraries.
    fastal.GaussianProcess.bounds : The same from fastal's own model, which has the factor.

    Notes
    -----
    With ``L L^T = cov + N`` and ``z = L^-1 (y - mean)`` the posterior before label t has
    ``s_t + noise_t = L_tt^2`` and ``y_t - mu_t = L_tt z_t``: O(T^3 / 3) once, instead of one
    posterior per label. Bounds do not depend on the unit of the labels: standardise `cov`, `y`,
    `noise` and `mean`, or none of them.

    The error of ``s_t`` is a few rounding errors of the prior variance. If labels are known nearly
    exactly, more rounding errors come from the condition of `cov`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, gp_bounds
    >>> x, y = np.array([0.0, 0.1, 3.0]), np.array([0.5, 0.6, -0.2])
    >>> cov = np.exp(-0.5 * (x[:, None] - x) ** 2)
    >>> gp_bounds(cov, y, 0.01).round(4)
    array([60.0687,  0.8255, 50.053 ])
    >>> GaussianProcess(lengthscale=1.0, noise=0.01).add_batch(x, y).round(4)
    array([60.0687,  0.8255, 50.053 ])
    """
    y = check.vector("y", y)
    t = y.size
    K = check.covariance("cov", cov, t)
    variances = check.one_per_label("noise", check.all_positive("noise", noise), t)
    centre = check.one_per_label("mean", check.finite_array("mean", mean), t)
    return bounds_of_factor(lower_factor(K, variances), K.diagonal(), y - centre, variances)


def lower_factor(cov: Array, noise: Array) -> Array:
    """Return the lower factor of ``cov + N`` in Fortran order, zeros above it."""
    if len(cov) == 0:
        return np.empty((0, 0), order="F")
    from scipy.linalg.lapack import dpotrf

    A = np.array(cov.T, order="F")  # symmetric: the transpose is copied without a stride
    np.einsum("ii->i", A)[:] += noise
    L, info = dpotrf(A, lower=1, clean=1, overwrite_a=1)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"`cov` plus `noise` is not positive definite at label {info - 1}: increase the noise "
            f"variance, got {noise[info - 1]:g}"
        )
    return np.asarray(L)


def bounds_of_factor(L: Array, prior: Array, residual: Array, noise: Array) -> Array:
    """Return all bounds from the lower factor of ``cov + N``; its diagonal is overwritten.

    prior : (T,), the diagonal of cov; residual : (T,), y - mean; noise : (T,), diagonal of N.
    """
    if len(L) == 0:
        return np.empty(0)
    from scipy.linalg.lapack import dtrtrs

    z, _ = dtrtrs(L, residual, lower=1)
    diagonal = L.diagonal().copy()
    # s_t = L_tt^2 - noise_t = cov_tt - sum_(j < t) L_tj^2: the noise does not cancel
    np.fill_diagonal(L, 0.0)
    s = np.maximum(prior - np.einsum("ij,ij->i", L, L), 0.0)
    # y_t - mu_t = L_tt z_t
    rows = np.stack([np.zeros(len(s)), s, diagonal * z.reshape(-1), noise], axis=-1)
    bounds = np.empty(len(rows))
    bound_scalar.gp_kl_rows(rows, bounds)  # without Numba
    if not np.isfinite(bounds).all():
        bad = int(np.argmin(np.isfinite(bounds)))
        raise ValueError(
            f"the bound of label {bad} overflows: its label is {rows[bad, 2]:g} from the mean"
        )
    return bounds


def gp_prior_kl(
    cov: ArrayLike,
    y: ArrayLike,
    noise: ArrayLike,
    *,
    mean: float = 0.0,
    jitter: float = 0.0,
) -> float:
    """Exact KL(q_t || p) of a Gaussian-process posterior from its prior.

    Both are processes with a common covariance function, hence the divergence is that of the
    function values at the labelled inputs (Lemma 3 of the paper's appendix).

    Parameters
    ----------
    cov : array_like, shape (t, t)
        Prior covariance of the function at the labelled inputs, without noise.
    y : array_like, shape (t,)
        The labels.
    noise : float or array_like, shape (t,)
        Noise variance, one for all labels or one each.
    mean : float, optional
        Constant prior mean.
    jitter : float, optional
        With 0 the exact divergence, which needs no inverse of `cov` and exists for duplicates as
        well. Otherwise `jitter` is added to the diagonals of both covariances, as the paper does
        for its PAC-Bayesian criterion (0.01).

    Returns
    -------
    float
        The divergence in nats.

    See Also
    --------
    fastal.GaussianProcess.prior_kl : The same for the labels of a Gaussian process.

    Examples
    --------
    >>> from fastal.bound import gp_prior_kl
    >>> round(gp_prior_kl([[1.0, 0.5], [0.5, 1.0]], [0.3, -0.2], 0.1), 6)
    1.485028
    """
    from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

    y = check.vector("y", y)
    t = y.size
    K = check.covariance("cov", cov, t)
    variances = check.label_noise(noise, 1.0, t)
    mean, jitter = check.real("mean", mean), check.zero_or_more("jitter", jitter)
    if t == 0:
        return 0.0
    L, info = dpotrf(K + np.diag(variances), lower=1)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"`cov` plus `noise` is not positive definite: the leading minor of order {info} is "
            "not positive; increase the noise variance"
        )
    residual = y - mean
    if jitter == 0.0:
        return prior_kl_of_factor(L, residual, variances)
    # mu_t - m = K A^-1 (y - m),  Sigma_t = K - K A^-1 K,  A = K + N = L L^T
    V, _ = dtrtrs(L, K, lower=1)
    alpha, _ = dpotrs(L, residual, lower=1)
    return gaussian_kl(K @ alpha.reshape(t), K - V.T @ V, np.zeros(t), K, jitter=jitter)


def prior_kl_of_factor(L: Array, residual: Array, noise: Array) -> float:
    """KL(q_t || p) from the lower factor of A = K + N, y - mean, and the noise variances."""
    from scipy.linalg.lapack import dpotrs, dtrtri

    # alpha = A^-1 (y - m)
    # 2 KL = log det A - log det N - sum_i (1 - n_i (A^-1)_ii) + alpha^T K alpha
    inverse, _ = dtrtri(L, lower=1)
    alpha, _ = dpotrs(L, residual, lower=1)
    alpha = alpha.reshape(residual.size)
    # log(L_ii^2 / n_i) and 1 - n_i (A^-1)_ii are both >= 0
    log_ratio = 2.0 * np.log(np.diagonal(L)) - np.log(noise)
    weights = 1.0 - noise * np.einsum("ij,ij->j", inverse, inverse)
    # alpha^T K alpha = alpha^T (y - m) - alpha^T N alpha
    fit = alpha @ (residual - noise * alpha)
    return max(0.0, 0.5 * float(log_ratio.sum() - weights.sum() + fit))


def alquier_bound(
    risk: float, kl: float, n: int, loss_range: float, *, delta: float = 0.01
) -> float:
    """PAC-Bayesian bound on the expected error for a loss in an interval (section 3.3).

    ``risk + (kl - log delta) / n + loss_range^2 / 2`` holds with probability ``1 - delta``.

    Parameters
    ----------
    risk : float
        Posterior mean of the loss on the labels.
    kl : float
        KL(q_t || p), see `gp_prior_kl`.
    n : int
        Number of labels.
    loss_range : float
        b - a of the loss.
    delta : float, optional
        One minus the confidence, in (0, 1].

    Returns
    -------
    float
        The bound, in the unit of the loss.

    Examples
    --------
    >>> from fastal.bound import alquier_bound
    >>> round(alquier_bound(0.2, 3.0, 50, 1.0), 6)
    0.852103
    """
    risk, kl = check.real("risk", risk), check.zero_or_more("kl", kl)
    n, loss_range = (
        check.count("n", n, 1, check.INT64_MAX),
        check.zero_or_more("loss_range", loss_range),
    )
    delta = check.confidence("delta", delta)
    return risk + (kl - math.log(delta)) / n + 0.5 * loss_range * loss_range


def mcallester_bound(risk: float, kl: float, n: int, *, delta: float = 0.01) -> float:
    """PAC-Bayesian bound on the expected error of a classifier (section 3.3).

    ``risk + sqrt((kl + log(2 sqrt(n) / delta)) / (2 n))`` holds with probability ``1 - delta``.

    Parameters
    ----------
    risk : float
        Posterior mean of the 0-1 loss on the labels, in [0, 1].
    kl : float
        KL(q_t || p).
    n : int
        Number of labels.
    delta : float, optional
        One minus the confidence, in (0, 1].

    Returns
    -------
    float
        The bound; one above 1 says nothing.

    Examples
    --------
    >>> from fastal.bound import mcallester_bound
    >>> round(mcallester_bound(0.1, 3.0, 200), 6)
    0.265435
    """
    risk, kl = check.fraction("risk", risk), check.zero_or_more("kl", kl)
    n, delta = check.count("n", n, 1, check.INT64_MAX), check.confidence("delta", delta)
    return risk + math.sqrt((kl + math.log(2.0 * math.sqrt(n) / delta)) / (2.0 * n))
