"""BayesianLogistic: many classes on given features, a model that grows label by label."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from fastal import _validation as check
from fastal._core import links, quadrature, softmax
from fastal._state import damaged_state, state_values
from fastal._threads import one_blas_thread
from fastal._types import Array, Ints
from fastal.models.buffers import CAPACITY
from fastal.models.settings import ModelSettings

# Up to so many weights, (k - 1) d, the curvature of all labels is taken anew with each label.
EXACT = 256

# With more weights: when a probability of a labelled input has moved by more than this share of
# itself since its curvature was taken (of `softmax.FLOOR`, if it is smaller).
MOVES = 0.4

# What is left to the mode, in posterior standard deviations.
GOAL_EXACT, GOAL = 1e-12, 1e-8

# Steps that shrink by less than this are made with the curvature of their own place.
SLOW_EXACT, SLOW = 0.3, 0.7

# A covariance is computed wholly after so many updates: each of them adds its rounding.
OLD = 200

MOST_ROUNDS = 100

# A covariance of so many weights has 200 MB.
MOST_WEIGHTS, MOST_CLASSES = 5000, 1000

# Inputs that are predicted at once.
PANEL = 1024

# A saved mode may be this far from a stationary point, in posterior standard deviations.
SAVED = 1e-5


class Now(NamedTuple):
    """The labels of one moment, set as one; what belongs to them is never written again.

    Inputs and labels are shared with the next moment, which writes after them.
    """

    n: int
    Z: Array  # (capacity, d) features times the prior's standard deviation
    y: Ints  # (capacity,)
    V: Array  # (m, d) the mode, in contrasts of the classes
    P: Array  # (n, k) probabilities at the mode
    Q: Array  # (n, k) probabilities at which the curvature of each label was taken
    S: Array  # (m d, m d) covariance of the weights
    H: Array  # its inverse, if the curvature is always exact; else (0, 0)
    grown: float  # log |H|, likewise; else nan
    age: int  # updates of the covariance since it was computed wholly
    work: tuple[int, int]  # Newton steps and renewals of the covariance at the last label


class BayesianLogistic(ModelSettings):
    """Multinomial logistic regression with a Gaussian posterior that grows label by label.

    ``p(y = c | x)`` is the softmax of ``w_c . x``, with one weight vector per class and the prior
    N(0, prior I). The posterior is approximated by a Gaussian at its mode (Laplace). After a label
    the new mode is found from the old one, and the bound ``r_t`` comes with it: the divergence of
    the approximations before and after the label (Corollary 1). Features can be anything: columns
    of a table, words, the last hidden layer of a network.

    Parameters
    ----------
    n_features : int
        Number of features d. There is no intercept: for one, let a feature be 1 everywhere.
    n_classes : int
        Number of classes k, at least 2. Labels are 0, 1, ..., k - 1.
    prior : float, optional
        Prior variance of each weight.

    Attributes
    ----------
    n_features, n_classes, prior
        The parameters, read-only: bounds are comparable only under common parameters.
    n_labels : int
        Number of labels added.

    See Also
    --------
    LaplaceClassifier : Two classes, by a Gaussian process.

    Notes
    -----
    The prior makes the k weight vectors identifiable: what the labels cannot tell, the sum of all
    weight vectors, keeps its prior, and the mode of the sum is 0. Hence only k - 1 contrasts are
    computed, (k - 1) d weights. For two classes the difference of the weight vectors is that of
    binary logistic regression with the prior variance ``2 prior``.

    ``r_t`` is taken at the weights. It is the same number at the labelled inputs, the new one among
    them: both posteriors are the prior times functions of the logits there.

    Up to 256 weights everything is exact up to rounding: each label takes the curvatures of all
    labels anew. With more, the covariance is updated by a term of rank k - 1 per label, in
    O((d k)^2 k), and old curvatures are taken anew where a probability of a labelled input has
    moved by 40 % of itself since (by 0.04, if it is below 0.1). The mode is exact, to 1e-8
    posterior standard deviations; ``r_t`` lacks a term of the second order in the change of the old
    curvatures (see the theory page).

    Threads may share a model: changes wait for one another, and none is lost. A reader sees the
    labels of one moment, and does not wait.

    Examples
    --------
    >>> from fastal import BayesianLogistic
    >>> model = BayesianLogistic(n_features=2, n_classes=3, prior=4.0)
    >>> round(model.add([1.0, 0.0], 0), 4), round(model.add([1.0, 1.0], 2), 4)
    (0.765, 1.7554)
    >>> model.predict_proba([[1.0, 0.0], [1.0, 1.0]]).round(3)
    array([[0.512, 0.185, 0.303],
           [0.267, 0.166, 0.567]])
    >>> model.predict([[1.0, 0.0], [1.0, 1.0]])
    array([0, 2])
    """

    _now: Now
    _settings = ("n_features", "n_classes", "prior")

    def __init__(self, n_features: int, n_classes: int, *, prior: float = 1.0) -> None:
        self._classes = check.count("n_classes", n_classes, 2, MOST_CLASSES)
        self._features = check.count("n_features", n_features, 1)
        self._prior = check.positive("prior", prior)
        self._scale = math.sqrt(self._prior)
        weights = (self._classes - 1) * self._features
        if weights > MOST_WEIGHTS:
            raise ValueError(
                f"`n_features` must leave at most {MOST_WEIGHTS:,} weights, (n_classes - 1) "
                f"n_features, got {check.short_repr(n_features)}: reduce the features"
            )
        self._E = softmax.contrasts(self._classes)
        self._exact = weights <= EXACT
        self._now = self._empty()

    def _empty(self) -> Now:
        d, k = self._features, self._classes
        D = (k - 1) * d
        H = np.eye(D) if self._exact else np.empty((0, 0))
        none = np.empty((0, k))
        return Now(
            0, np.empty((0, d)), np.empty(0, dtype=np.int64), np.zeros((k - 1, d)), none, none,
            np.eye(D), H, 0.0 if self._exact else math.nan, 0, (0, 0),
        )  # fmt: skip

    # What others read; one moment each.

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._classes

    @property
    def prior(self) -> float:
        """Prior variance of each weight."""
        return self._prior

    @property
    def n_labels(self) -> int:
        """Number of labels added."""
        return self._now.n

    @property
    def weights(self) -> Array:
        """The mode: one weight vector per class, (k, d). They sum to zero."""
        weights: Array = self._scale * (self._E @ self._now.V)
        return weights

    @property
    def _work(self) -> tuple[int, int]:
        return self._now.work

    def _take_settings(self, changed: Self) -> None:
        vars(self).update(vars(changed))

    # Growing.

    def add(self, x: ArrayLike, y: float) -> float:
        """Add one label and return its bound ``r_t`` without the constant C.

        Parameters
        ----------
        x : array_like, shape (d,)
            The features; a number for one feature.
        y : {0, 1, ..., k - 1}
            Its class.

        Returns
        -------
        float
            ``KL(q_t || q_{t+1})`` of the Gaussian posteriors of the weights.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the mode is not found. As after any other error, the model is as it was before the
            call.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(2, 4)
        >>> round(model.add([0.5, 1.0], 3), 4)
        0.4082
        >>> model.n_labels
        1
        """
        label, x = check.real("y", y), check.point(x, self._features)
        labels = self._labels("y", label, 1)
        scaled = self._scaled("x", check.point(x, self._features)[None, :])
        return float(self._append(scaled, labels)[0])

    def add_batch(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Add labels in order and return their bounds.

        Parameters
        ----------
        X : array_like, shape (n, d)
            The features; shape (n,) for one feature.
        y : array_like, shape (n,)
            Their classes.

        Returns
        -------
        ndarray, shape (n,)
            ``r_t`` of each label, given all before it, as from `add`.

        Raises
        ------
        numpy.linalg.LinAlgError
            If a mode is not found; none of the labels is added then.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> model.add_batch([[1.0], [1.0], [2.0]], [0, 0, 2]).round(4)
        array([0.2884, 0.118 , 1.5015])
        """
        inputs = check.points("X", X, self._features)
        labels = self._labels("y", y, len(inputs))
        labels = self._labels("y", labels, len(inputs))
        scaled = self._scaled("X", check.points("X", inputs, self._features))
        return self._append(scaled, labels)

    def _labels(self, name: str, y: ArrayLike, size: int | None) -> Ints:
        return check.class_numbers(name, y, size, self._classes)

    def _scaled(self, name: str, X: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled: Array = np.ascontiguousarray(X * self._scale)
        if not np.isfinite(scaled).all():
            worst = X.flat[np.abs(X).argmax()]
            raise ValueError(
                f"`{name}` times the prior's standard deviation is not finite, got {worst:g}"
            )
        return scaled

    def _append(self, scaled: Array, labels: Ints) -> Array:
        """Add labels, or none of them, inside the turn; scaled : (n, d)."""
        now, bounds = self._with_room(len(labels)), np.empty(len(labels))
        with one_blas_thread(), np.errstate(all="ignore"):
            for i, label in enumerate(labels.tolist()):
                now, bounds[i] = self._added(now, scaled[i], label)
        self._now = now
        return bounds

    def _with_room(self, more: int) -> Now:
        """Return the labels of this moment with room for more; the capacity at least doubles."""
        now = self._now
        total = now.n + more
        if total <= len(now.y):
            return now
        capacity = max(2 * len(now.y), total, CAPACITY)
        Z, y = np.empty((capacity, self._features)), np.empty(capacity, dtype=np.int64)
        Z[: now.n], y[: now.n] = now.Z[: now.n], now.y[: now.n]
        return now._replace(Z=Z, y=y)

    def _added(self, now: Now, z: Array, label: int) -> tuple[Now, float]:
        """Return the moment after a label, and its bound."""
        n, E, m = now.n, self._E, self._classes - 1
        now.Z[n], now.y[n] = z, label
        Z, y = now.Z[: n + 1], now.y[: n + 1]
        # the mode for this label alone, and the covariance with its curvature there
        B, C = softmax.seen_from(now.S, z, m)
        p = np.empty(m + 1)
        status, u = softmax.own_step(C, now.V @ z, label, E, p)
        if status != softmax.FOUND:
            raise self._lost(n)
        V = now.V + (u @ B).reshape(now.V.shape)
        M, _, _ = softmax.middle(softmax.curvature(p, E), C)
        S, Q = softmax.lower_covariance(now.S, B, M), np.vstack((now.Q, p))
        # the mode for all labels
        goal, slow = (GOAL_EXACT, SLOW_EXACT) if self._exact else (GOAL, SLOW)
        V, P, S, Q, age, work = self._climb(Z, y, V, S, Q, now.age + 1, goal, slow)
        change = V - now.V
        H, grown = now.H, now.grown
        if self._exact:
            H, S, grown = self._inverse(Z, P, n)
            Q, work = P, (work[0], work[1] + 1)
            # 2 KL = tr (H1 - H0) S0 - log |H1| / |H0| + change^T H1 change
            moved = change.ravel()
            parts = float(np.sum((H - now.H) * now.S)), now.grown - grown, float(moved @ H @ moved)
            r = max(0.5 * math.fsum(parts), 0.0)
        else:
            before = np.empty((n + 1, m + 1))
            softmax.evaluate(Z, y, now.V, E, before)
            status, r = softmax.divergence(Z, E, change, before, P, B, C)
            if softmax.moved(P, Q).max() > MOVES:
                S, Q, age = self._renewed(Z, P, S, Q, age, 0.5 * MOVES)
                work = work[0], work[1] + 1
        if not (r < math.inf):
            raise self._lost(n)
        return Now(n + 1, now.Z, now.y, V, P, Q, S, H, grown, age, work), r

    def _climb(
        self, Z: Array, y: Ints, V: Array, S: Array, Q: Array, age: int, goal: float, slow: float
    ) -> tuple[Array, Array, Array, Array, int, tuple[int, int]]:
        """Return mode and probabilities, the covariance near it and its reference, and the work."""
        V, P = np.ascontiguousarray(V), np.empty((len(y), self._classes))
        total = 0
        for renewals in range(MOST_ROUNDS):
            status, steps = softmax.climb(Z, y, V, self._E, S, P, goal, slow)
            total += steps
            if status == softmax.FOUND:
                return V, P, S, Q, age, (total, renewals)
            if status == softmax.LOST:
                break
            # the second time in vain: all of it
            least = 0.1 * MOVES if renewals == 0 else 0.0
            S, Q, age = self._renewed(Z, P, S, Q, age, least)
        raise self._lost(len(y) - 1)

    def _renewed(
        self, Z: Array, P: Array, S: Array, Q: Array, age: int, least: float
    ) -> tuple[Array, Array, int]:
        """Return the covariance with curvatures taken anew, their reference, and its age.

        Those of all labels whose probabilities have moved by more than `least`, by an update if
        they are few; else of all.
        """
        n, weights = len(P), (self._classes - 1) * self._features
        if n * (self._classes - 1) <= weights // 2 and not self._exact:
            # few labels: from the prior on
            none = np.zeros(P.shape)
            status, S = softmax.change_curvatures(np.eye(weights), Z, P, none, self._E)
            if status == softmax.FOUND:
                return S, P.copy(), 0
        rows = np.flatnonzero(softmax.moved(P, Q) > least)
        few = len(rows) * (self._classes - 1) <= weights // 4
        if least > 0.0 and few and age < OLD and not self._exact:
            status, new = softmax.change_curvatures(S, Z[rows], P[rows], Q[rows], self._E)
            if status == softmax.FOUND:
                Q = Q.copy()
                Q[rows] = P[rows]
                return new, Q, age + 1
        return self._inverse(Z, P, n - 1)[1], P.copy(), 0

    def _inverse(self, Z: Array, P: Array, n: int) -> tuple[Array, Array, float]:
        """Return the precision of labels with these probabilities, its inverse and log |H|."""
        D = (self._classes - 1) * self._features
        H = np.empty((D, D))
        softmax.precision(Z, P, self._E, H)
        # H is symmetric: LAPACK's upper triangle is the lower one of rows
        factor, status = lapack.dpotrf(H.T, lower=0, clean=0)
        if status != 0:
            raise self._lost(n)
        grown = 2.0 * float(np.log(np.diagonal(factor)).sum())
        S, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        softmax.mirror(S.T)
        return H, S.T, grown

    def _lost(self, n: int) -> np.linalg.LinAlgError:
        return np.linalg.LinAlgError(
            f"the mode of the posterior is not found at label {n + 1}; lower the prior variance "
            f"({self._prior:g}), or scale the features"
        )

    # Asking.

    def _look(self, X: ArrayLike) -> Array:
        """Return inputs to predict at, scaled."""
        return self._scaled("X", check.points("X", X, self._features))

    @overload
    def logits(self, X: ArrayLike, *, return_var: Literal[False] = ...) -> Array: ...

    @overload
    def logits(self, X: ArrayLike, *, return_var: bool = ...) -> Array | tuple[Array, Array]: ...

    def logits(self, X: ArrayLike, *, return_var: bool = False) -> Array | tuple[Array, Array]:
        """Posterior mean of the logits of the classes, with their variances on request.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Features; shape (n,) for one feature.
        return_var : bool, optional
            Return the variances, shape (n, k), as well.

        Returns
        -------
        mean : ndarray, shape (n, k)
            ``w_c . x``; 0 if there are no labels. They sum to zero.
        var : ndarray, shape (n, k)
            Of the logits minus their mean over the classes.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add([1.0], 2)
        >>> mean, var = model.logits([[1.0]], return_var=True)
        >>> mean.round(4), var.round(4)
        (array([[-0.2448, -0.2448,  0.4897]]), array([[0.5229, 0.5229, 0.4849]]))
        """
        wanted = check.flag("return_var", return_var)
        Z, now = self._look(X), self._now
        mean = softmax.logits(Z, now.V, self._E)
        if not wanted:
            return mean
        # the variance of logit c is E_c G E_c
        var = np.einsum("ca,nab,cb->nc", self._E, self._covariances(Z, now), self._E)
        return mean, np.maximum(var, 0.0)

    def _covariances(self, Z: Array, now: Now) -> Array:
        """Return the covariances of the contrasts at scaled inputs, (n, m, m)."""
        m = self._classes - 1
        out = np.empty((len(Z), m, m))
        with one_blas_thread():
            for low in range(0, len(Z), PANEL):
                high = low + PANEL
                softmax.contrast_covariances(Z[low:high], now.S, m, out[low:high])
        return out

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, averaged over the posterior of the weights.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Features; shape (n,) for one feature.

        Returns
        -------
        ndarray, shape (n, k)
            Rows sum to 1.

        Notes
        -----
        For two classes the integral, with an absolute error below 1e-14 (that of
        `LaplaceClassifier.predict_proba`). For more there is no closed form: the average of each
        pair of classes is approximated as MacKay (1992) does, and the pairs are put together.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add_batch([[1.0], [1.0]], [2, 2])
        >>> model.predict_proba([[1.0], [-1.0]]).round(4)
        array([[0.2181, 0.2181, 0.5638],
               [0.419 , 0.419 , 0.1621]])
        """
        return self._probabilities(self._look(X), self._now)

    def _probabilities(self, Z: Array, now: Now) -> Array:
        F, G = softmax.logits(Z, now.V, self._E), self._covariances(Z, now)
        P = np.empty(F.shape)
        if self._classes == 2:
            # f_1 - f_0 is sqrt(2) times the only contrast, up to its sign
            var = np.maximum(2.0 * G[:, 0, 0], 0.0)
            quadrature.probabilities(links.LOGISTIC, F[:, 1] - F[:, 0], var, P)
        else:
            softmax.averaged(F, G, self._E, P)
        return P

    def predict(self, X: ArrayLike) -> Ints:
        """Return the most probable class at the mode; the first among equals.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Features; shape (n,) for one feature.

        Returns
        -------
        ndarray of int, shape (n,)
            0 to k - 1.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add([1.0], 2)
        >>> model.predict([[1.0], [-1.0]])
        array([2, 0])
        """
        found: Ints = np.argmax(softmax.logits(self._look(X), self._now.V, self._E), axis=1)
        return found

    def replay_errors(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Return the errors on a test set after each label, all labels added once more.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Features of the test set; shape (n,) for one feature.
        y : array_like, shape (n,)
            Their classes.

        Returns
        -------
        losses : ndarray, shape (n_labels,)
            Mean of ``-log p(y)`` after each label, with `predict_proba`.
        rmse : ndarray, shape (n_labels,)
            Root mean square of one minus the probability of the class that is there; for two
            classes the root of the Brier score.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add_batch([[1.0], [1.0]], [2, 2])
        >>> model.replay_errors([[1.0]], [2])[1].round(4)
        array([0.5275, 0.4362])
        """
        inputs = check.points("X", X, self._features)
        if not len(inputs):
            raise ValueError("`X` must have at least one row, got 0")
        labels = self._labels("y", y, len(inputs))
        now, Z = self._now, self._scaled("X", inputs)
        model, losses, rmse = self._without_labels(), np.empty(now.n), np.empty(now.n)
        for t in range(now.n):
            model._append(now.Z[t : t + 1], now.y[t : t + 1])
            there = model._probabilities(Z, model._now)[np.arange(len(labels)), labels]
            with np.errstate(divide="ignore"):
                losses[t] = -np.log(there).mean()
            rmse[t] = np.sqrt(np.mean((1.0 - there) ** 2))
        return losses, rmse

    def log_marginal_likelihood(self) -> float:
        """Log probability of the labels under the prior, by the same approximation.

        Returns
        -------
        float
            ``log p(y_1, ..., y_t)``, 0 if there are no labels; to compare values of `prior`.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add([1.0], 2)
        >>> round(model.log_marginal_likelihood(), 6)
        -1.121184
        """
        now = self._now
        Z, y, P = now.Z[: now.n], now.y[: now.n], np.empty(now.P.shape)
        with one_blas_thread():
            value = softmax.evaluate(Z, y, now.V, self._E, P)
            # psi - 1/2 log |H|, with the prior's precision 1
            return float(value - 0.5 * self._inverse(Z, P, now.n - 1)[2])

    def bounds(self) -> Array:
        """Return the bounds of all labels under the present parameters; they are added once more.

        Returns
        -------
        ndarray, shape (n_labels,)
            ``r_t`` of each label given those before it, as `add` returned it.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add_batch([[1.0], [1.0], [2.0]], [0, 0, 2])
        >>> model.bounds().round(4)
        array([0.2884, 0.118 , 1.5015])
        """
        now = self._now
        return self._without_labels()._append(now.Z[: now.n], now.y[: now.n])

    def _without_labels(self) -> BayesianLogistic:
        """Return a model with the same parameters and no labels."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new._now = self._empty()
        return new

    # Keeping.

    def rewind(self, n: int) -> None:
        """Forget all labels but the first `n`; their mode and covariance are computed again.

        Parameters
        ----------
        n : int
            Number of labels to keep, at most `n_labels`.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add_batch([[1.0], [1.0], [2.0]], [0, 0, 2])
        >>> model.rewind(1)
        >>> model.n_labels
        1
        """
        n = check.count("n", n)
        now = self._now
        if n > now.n:
            raise ValueError(
                f"`n` must be at most the number of labels, {now.n}, got {check.short_repr(n)}"
            )
        if n == now.n:
            return
        # a copy: the rows after n are written again
        Z, y = now.Z.copy(), now.y.copy()
        with one_blas_thread(), np.errstate(all="ignore"):
            self._now = self._settled(Z, y, n, now.V, SLOW_EXACT)

    def _settled(self, Z: Array, y: Ints, n: int, V: Array, slow: float) -> Now:
        """Return the moment of n labels, with the curvature of their mode; V is a start."""
        labels = Z[:n], y[:n]
        P = np.empty((n, self._classes))
        softmax.evaluate(*labels, V, self._E, P)
        S = self._inverse(labels[0], P, n - 1)[1]
        V, P, _, _, _, work = self._climb(*labels, V.copy(), S, P, 0, GOAL_EXACT, slow)
        H, S, grown = self._inverse(labels[0], P, n - 1)
        if not self._exact:
            H, grown = np.empty((0, 0)), math.nan
        return Now(n, Z, y, V, P, P, S, H, grown, 0, (work[0], work[1] + 2))

    def copy(self) -> BayesianLogistic:
        """Return a model of its own with the same labels.

        Returns
        -------
        BayesianLogistic
            Equal to this one to the last bit.

        Examples
        --------
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> other = model.copy()
        >>> _ = other.add([1.0], 1)
        >>> model.n_labels, other.n_labels
        (0, 1)
        """
        new = type(self).__new__(type(self))
        now = self._now
        vars(new).update(vars(self))
        # inputs and labels are written to; the rest is never written again
        new._now = now._replace(Z=now.Z.copy(), y=now.y.copy())
        return new

    def __copy__(self) -> BayesianLogistic:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> BayesianLogistic:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, labels and mode as plain lists and numbers, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`. Inputs are multiplied by the root of `prior`, as they are kept.

        Examples
        --------
        >>> import numpy as np
        >>> from fastal import BayesianLogistic
        >>> model = BayesianLogistic(1, 3)
        >>> _ = model.add([0.5], 1)
        >>> again = BayesianLogistic.from_dict(model.to_dict())
        >>> np.allclose(again.predict_proba([[0.5]]), model.predict_proba([[0.5]]), atol=1e-14)
        True
        """
        now = self._now
        return {
            "kind": "BayesianLogistic",
            "version": 1,
            "n_features": self._features,
            "n_classes": self._classes,
            "prior": self._prior,
            "scaled_inputs": now.Z[: now.n].tolist(),
            "labels": now.y[: now.n].tolist(),
            "contrasts": now.V.tolist(),
            "curvature_at": now.Q.tolist(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> BayesianLogistic:
        """Return the model that `to_dict` described; its covariance is computed again.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.

        Returns
        -------
        BayesianLogistic
            A new one. What is damaged or foreign raises a ValueError that says what is wrong.
        """
        names = ("kind", "version", "n_features", "n_classes", "prior", "scaled_inputs", "labels")
        kind, version, features, classes, prior, inputs, labels, contrasts, reference = (
            state_values(state, (*names, "contrasts", "curvature_at"))
        )
        if (kind, version) != ("BayesianLogistic", 1) or type(version) is not int:
            raise ValueError(
                f"`state` must describe a BayesianLogistic of version 1, got "
                f"{check.short_repr([kind, version])}"
            )
        with damaged_state():
            new = cls(features, classes, prior=prior)
            V, shape = check.finite_array("contrasts", contrasts), new._now.V.shape
            if V.shape != shape:
                raise ValueError(
                    f"`contrasts` must have shape (n_classes - 1, n_features), {shape}, got "
                    f"{V.shape}"
                )
            if not isinstance(labels, list):
                raise TypeError(f"`labels` must be a list, got {check.short_repr(labels)}")
            if labels or inputs or reference:
                y = new._labels("labels", labels, None)
                Z = check.points("scaled_inputs", inputs, new._features)
                check.class_numbers("labels", labels, len(Z), new._classes)
                Q = check.class_probabilities("curvature_at", reference)
                if Q.shape != (len(Z), new._classes):
                    raise ValueError(
                        f"`curvature_at` must have shape {(len(Z), new._classes)}, got {Q.shape}"
                    )
                new._restore(Z, y, V, Q)
            elif V.any():
                raise ValueError("`contrasts` must be zero without labels")
        return new

    def _restore(self, Z: Array, y: Ints, V: Array, Q: Array) -> None:
        """Take labels, their mode and where curvatures were taken, into an empty model."""
        n, P = len(y), np.empty((len(y), self._classes))
        with one_blas_thread(), np.errstate(all="ignore"):
            softmax.evaluate(Z, y, V, self._E, P)
            g = softmax.gradient(Z, y, V, self._E, P).ravel()
            try:
                H, S, grown = self._inverse(Z, Q, n - 1)
            except np.linalg.LinAlgError as error:
                raise ValueError(str(error)) from None
        # At the mode the gradient is zero, measured in posterior standard deviations.
        if not (g @ S @ g <= SAVED**2):
            raise ValueError("`contrasts` are not those of the mode of the labels")
        if not self._exact:
            H, grown = np.empty((0, 0)), math.nan
        self._now = Now(n, Z, y, V, P, Q, S, H, grown, 0, (0, 0))
