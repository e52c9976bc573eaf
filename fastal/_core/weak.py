"""The search for one length scale and one noise ratio, with mean and amplitude in closed form.

Labels have the covariance a A, A = R + g I, and the mean m. With w = A^-1 1, s = 1^T w,
    m = w^T y / s,    alpha = A^-1 (y - m),    Q = alpha^T y,    a = Q / (n - 1),
what is minimised over u = log(l / sqrt(d)) and v = log(g) is minus the restricted likelihood, that
is the integral of the likelihood over m (flat) and a (da / a), here without its constant,
    f = (n - 1)/2 log Q + 1/2 log |A| + 1/2 log s,
plus, with the weak prior, u^2 / 2 + (v + 3)^2 / 8. The slope of f for a slope A' of A is
    f' = -1/2 sum_ij M_ij A'_ij,    M = (n - 1)/Q alpha alpha^T + w w^T / s - A^-1,
and A' is g I for v. Distances do not change in a search: `squares` holds |x_i - x_j|^2 / d.

All arrays (n, n) are read and written in their lower triangles, row by row: to LAPACK, which goes
column by column, these are upper ones. Nothing here needs Python or raises: compiled callers may
use `search` as it is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastal._core import covariance
from fastal._core.covariance import slopes_from_squares
from fastal._core.dots import dots
from fastal._core.jit import alone, jit
from fastal._core.symbols import dpotrf, dpotri, dpotrs

Array = NDArray[np.float64]

# The weak prior: log(l / sqrt(d)) ~ N(0, 1), log(g) ~ N(-3, 2^2).
CENTRES = (0.0, -3.0)
WIDTHS = (1.0, 2.0)

# The box of the search, for l / sqrt(d) and g, and in logarithms.
LEAST_SCALE, MOST_SCALE = 0.05, 30.0
LEAST_RATIO, MOST_RATIO = 1e-4, 10.0
LOW = (math.log(LEAST_SCALE), math.log(LEAST_RATIO))
HIGH = (math.log(MOST_SCALE), math.log(MOST_RATIO))

# Where the surface is looked at before the search: it has hills of about this width.
SCREEN_U = (-2.5, -1.4, -0.3, 0.8, 1.9, 3.0)
SCREEN_V = (-8.0, -5.0, -2.5, 0.5)

# Searches without a fit before. Against 48 searches on each of 1,500 parts of real data, 5 to 100
# labels, these never missed the best with the weak prior, and twice without it, by 2e-4 nats. From
# a fit before, which adds one search only: 1 and 10 of 750 missed, at worst by 0.3 and 2.3 nats.
FOLLOWED = 6

MOST_STEPS = 60

# A search ends when its next step promises to gain less than this, in nats.
GAIN = 1e-11

# What a search may still gain, times what its next step promises: else it is given up in favour of
# a better one.
HOPE = 20.0

# Two places are one if they are closer than this, times WIDTHS.
SAME = 0.02

# A start is no closer than this to an earlier one, or to its end, times WIDTHS.
APART = 1.5

# Squared distances stay below: times a slope of 0 they give 0, not NaN.
FARTHEST = 1e300

# Entries of a place: u, v, f, their slopes, m, Q.
U, V, VALUE, SLOPE_U, SLOPE_V, MEAN, FORM = range(7)
PLACE = 7


squared_distances = alone(covariance.squared_distances)  # fused, unlike what calls it here


@jit
def pair_squares(Z: Array, features: float, squares: Array) -> None:
    """Write ``|Z_i - Z_j|^2 / features`` of all pairs of columns i >= j, at most `FARTHEST`.

    Z : (d, n), only read.  squares : (n, n), its lower triangle is written.
    """
    for i in range(Z.shape[1]):
        row = squares[i]
        squared_distances(Z, 0, i + 1, Z, i, row)
        for j in range(i + 1):
            row[j] = min(row[j] / features, FARTHEST)


@jit
def evaluate(
    kind: int,
    squares: Array,
    y: Array,
    weak: bool,
    place: Array,
    order: int,
    slopes: Array,
    factor: Array,
    vectors: Array,
    curvature: Array,
) -> int:
    """Write f, its slopes, m and Q at ``place[U], place[V]`` to `place`; return LAPACK's status.

    order : 0 for f, m and Q alone, 1 for the slopes as well, 2 for `curvature` as well.
    squares : (n, n), only read.  slopes, factor : (>= n, n) and vectors : (4, n), overwritten.
    curvature : (3,), uu, uv, vv of about the second derivatives of f (`average_information`).
    """
    n = y.size
    g = math.exp(place[V])
    per_square = math.exp(-2.0 * place[U])
    for i in range(n):
        row, square, slope = factor[i], squares[i], slopes[i]
        for j in range(i):
            slope[j] = square[j] * per_square
        slopes_from_squares(kind, 1.0, slope, row, i)
        # dR/du = r^2 (-2 dR/d(r^2))
        for j in range(i):
            slope[j] *= square[j] * per_square
        row[i] = 1.0 + g
    text = np.empty(1, dtype=np.uint8)
    text[0] = 85  # U
    whole = np.empty(3, dtype=np.int32)
    whole[0], whole[1], whole[2] = n, 2, 0
    c, k = text.ctypes.data, whole.ctypes.data
    dpotrf(c, k, factor.ctypes.data, k, k + 8)
    if whole[2] != 0:
        return int(whole[2])
    log_det = 0.0
    alpha, w = vectors[0], vectors[1]
    for i in range(n):
        log_det += math.log(factor[i, i])
        alpha[i] = y[i]
        w[i] = 1.0
    # alpha = A^-1 y, w = A^-1 1
    dpotrs(c, k, k + 4, factor.ctypes.data, k, vectors.ctypes.data, k, k + 8)
    s = 0.0
    m = 0.0
    for i in range(n):
        s += w[i]
        m += alpha[i]
    m /= s
    for i in range(n):
        alpha[i] -= m * w[i]
    form = dots((alpha,), y, n)[0]
    place[VALUE] = 0.5 * (n - 1.0) * math.log(form) + log_det + 0.5 * math.log(s)
    place[MEAN], place[FORM] = m, form
    if weak:
        u = (place[U] - CENTRES[0]) / WIDTHS[0]
        v = (place[V] - CENTRES[1]) / WIDTHS[1]
        place[VALUE] += 0.5 * (u * u + v * v)
    if order > 0:
        if order > 1:
            average_information(g, form, s, slopes, factor, vectors, curvature)
            if weak:
                curvature[0] += 1.0 / (WIDTHS[0] * WIDTHS[0])
                curvature[2] += 1.0 / (WIDTHS[1] * WIDTHS[1])
        # A^-1 in the triangle of the factor
        dpotri(c, k, factor.ctypes.data, k, k + 8)
        if whole[2] != 0:
            return int(whole[2])
        scale = (n - 1.0) / form
        along_u = 0.0
        along_v = 0.0
        for i in range(n):
            # 1/2 sum_ij M_ij A'_ij: below the diagonal each pair counts twice, 1/2 * 2
            by_alpha, by_w = dots((alpha, w), slopes[i], i)
            trace = dots((factor[i],), slopes[i], i)[0]
            along_u += scale * alpha[i] * by_alpha + w[i] * by_w / s - trace
            along_v += scale * alpha[i] * alpha[i] + w[i] * w[i] / s - factor[i, i]
        place[SLOPE_U] = -along_u
        place[SLOPE_V] = -0.5 * g * along_v
        if weak:
            place[SLOPE_U] += (place[U] - CENTRES[0]) / (WIDTHS[0] * WIDTHS[0])
            place[SLOPE_V] += (place[V] - CENTRES[1]) / (WIDTHS[1] * WIDTHS[1])
    # a later use keeps the arguments alive until here
    text[0], whole[0] = 0, 0
    # NaN, from labels without any spread, is a failure as well
    return 0 if place[VALUE] - place[VALUE] == 0.0 else -1


@jit
def average_information(
    g: float, form: float, s: float, slopes: Array, factor: Array, vectors: Array, curvature: Array
) -> None:
    """Write the mean of observed and expected information, which costs O(n^2) only.

    With t_u = A_u alpha, t_v = g alpha and P = A^-1 - w w^T / s (Gilmour and others, 1995):
        (n - 1)/2 (t_i^T P t_j / Q - (alpha^T t_i)(alpha^T t_j) / Q^2).
    It is a square, positive or zero, and near the second derivatives where the model is right.
    vectors : (4, n), alpha and w, which are read, and two rows that are overwritten.
    """
    alpha, w, t, solved = vectors[0], vectors[1], vectors[2], vectors[3]
    n = alpha.size
    for i in range(n):
        slope, a = slopes[i], alpha[i]
        t[i] = dots((alpha,), slope, i)[0]
        for j in range(i):
            t[j] += slope[j] * a
    for i in range(n):
        solved[i] = t[i]
    text = np.empty(1, dtype=np.uint8)
    text[0] = 85  # U
    whole = np.empty(3, dtype=np.int32)
    whole[0], whole[1], whole[2] = n, 1, 0
    c, k = text.ctypes.data, whole.ctypes.data
    dpotrs(c, k, k + 4, factor.ctypes.data, k, vectors.ctypes.data + 24 * n, k, k + 8)
    # products with t_u, with A^-1 t_u, with alpha, and with A^-1 alpha
    at, wt = dots((alpha, w), t, n)
    t_t, a_t = dots((t, alpha), solved, n)
    aa, wa = dots((alpha, w), alpha, n)
    for i in range(n):
        solved[i] = alpha[i]
    dpotrs(c, k, k + 4, factor.ctypes.data, k, vectors.ctypes.data + 24 * n, k, k + 8)
    a_a = dots((alpha,), solved, n)[0]
    half = 0.5 * (n - 1.0)
    curvature[0] = half * ((t_t - wt * wt / s) / form - at * at / (form * form))
    curvature[1] = half * g * ((a_t - wt * wa / s) / form - at * aa / (form * form))
    curvature[2] = half * g * g * ((a_a - wa * wa / s) / form - aa * aa / (form * form))
    text[0], whole[0] = 0, 0


@jit
def lowest_in_box(
    gradient: tuple[float, float],
    curvature: Array,
    low: tuple[float, float],
    high: tuple[float, float],
) -> tuple[float, float, float]:
    """Return the step p in a box with the least q = gradient.p + 1/2 p.B p, and q.

    curvature : (3,), B_uu, B_uv, B_vv, which need not be positive.
    """
    g0, g1 = gradient
    b00, b01, b11 = curvature[0], curvature[1], curvature[2]
    p0, p1, least = 0.0, 0.0, 0.0
    # inside, where the slope of q is zero; then the four edges: their ends and their lowest points
    determinant = b00 * b11 - b01 * b01
    if determinant > 0.0 and b00 > 0.0:
        a = (b01 * g1 - b11 * g0) / determinant
        b = (b01 * g0 - b00 * g1) / determinant
        if low[0] <= a <= high[0] and low[1] <= b <= high[1]:
            return a, b, 0.5 * (g0 * a + g1 * b)
    for edge in range(12):
        side, point = edge // 3, edge % 3
        if side < 2:
            a = low[0] if side == 0 else high[0]
            b = low[1] if point == 0 else high[1]
            if point == 2:
                if not b11 > 0.0:
                    continue
                b = min(max(-(g1 + b01 * a) / b11, low[1]), high[1])
        else:
            b = low[1] if side == 2 else high[1]
            a = low[0] if point == 0 else high[0]
            if point == 2:
                if not b00 > 0.0:
                    continue
                a = min(max(-(g0 + b01 * b) / b00, low[0]), high[0])
        q = g0 * a + g1 * b + 0.5 * (b00 * a * a + 2.0 * b01 * a * b + b11 * b * b)
        if q < least:
            p0, p1, least = a, b, q
    return p0, p1, least


@jit
def copy_place(source: Array, target: Array) -> None:
    """Copy one place; an assignment of arrays would take much longer to compile."""
    for i in range(PLACE):
        target[i] = source[i]


@jit
def near_any(place: Array, others: Array, n: int, distance: float) -> bool:
    """Return whether a place is closer than a distance, times `WIDTHS`, to one of the first n."""
    for i in range(n):
        if (
            abs(place[U] - others[i, U]) < distance * WIDTHS[0]
            and abs(place[V] - others[i, V]) < distance * WIDTHS[1]
        ):
            return True
    return False


@jit
def descend(
    kind: int,
    squares: Array,
    y: Array,
    weak: bool,
    place: Array,
    to_beat: float,
    known: Array,
    n_known: int,
    slopes: Array,
    factor: Array,
    vectors: Array,
) -> int:
    """Go from `place` to the lowest point of its valley in the box; return the evaluations.

    Steps of a quadratic model within a trusted box. The model begins with the average information
    and learns from the slopes (symmetric rank one), also from those of a step that is not taken.
    place : (PLACE,), overwritten; its value is inf if nothing could be factored.
    to_beat : the search ends where it is clear that it will not come below this value; or inf.
    known : (>= n_known, PLACE), places of which one that comes close ends the search.
    """
    curvature, tried = np.empty(3), np.empty(PLACE)
    tried[U] = min(max(place[U], LOW[0]), HIGH[0])
    tried[V] = min(max(place[V], LOW[1]), HIGH[1])
    place[VALUE] = math.inf
    trusted, promised, p0, p1 = 1.0, 0.0, 0.0, 0.0
    count = 0
    while count <= MOST_STEPS:
        order = 2 if count == 0 else 1
        status = evaluate(kind, squares, y, weak, tried, order, slopes, factor, vectors, curvature)
        count += 1
        if count == 1:
            if status != 0:
                return count
            copy_place(tried, place)
        elif status != 0:
            trusted *= 0.25
        else:
            # B += r r^T / (r.p), r = change of the slopes - B p
            r0 = tried[SLOPE_U] - place[SLOPE_U] - curvature[0] * p0 - curvature[1] * p1
            r1 = tried[SLOPE_V] - place[SLOPE_V] - curvature[1] * p0 - curvature[2] * p1
            rp = r0 * p0 + r1 * p1
            if abs(rp) > 1e-8 * math.sqrt((r0 * r0 + r1 * r1) * (p0 * p0 + p1 * p1)):
                curvature[0] += r0 * r0 / rp
                curvature[1] += r0 * r1 / rp
                curvature[2] += r1 * r1 / rp
            step = max(abs(p0) / WIDTHS[0], abs(p1) / WIDTHS[1])
            gained = (tried[VALUE] - place[VALUE]) / promised
            if gained < 0.25:
                trusted = 0.25 * step
            elif gained > 0.75 and step > 0.8 * trusted:
                trusted = min(2.0 * trusted, 8.0)
            if tried[VALUE] <= place[VALUE]:
                copy_place(tried, place)
            elif step < 1e-9:
                break  # differences of f are rounding
        if near_any(place, known, n_known, SAME):
            break
        # the box, and the trusted part of it
        low = (
            max(LOW[0] - place[U], -trusted * WIDTHS[0]),
            max(LOW[1] - place[V], -trusted * WIDTHS[1]),
        )
        high = (
            min(HIGH[0] - place[U], trusted * WIDTHS[0]),
            min(HIGH[1] - place[V], trusted * WIDTHS[1]),
        )
        p0, p1, promised = lowest_in_box((place[SLOPE_U], place[SLOPE_V]), curvature, low, high)
        if not promised < -GAIN:
            break
        inside = max(abs(p0) / WIDTHS[0], abs(p1) / WIDTHS[1]) < 0.99 * trusted
        if inside and place[VALUE] + HOPE * promised > to_beat:
            break
        tried[U] = min(max(place[U] + p0, LOW[0]), HIGH[0])
        tried[V] = min(max(place[V] + p1, LOW[1]), HIGH[1])
        p0, p1 = tried[U] - place[U], tried[V] - place[V]
    return count


@jit
def screen(
    kind: int,
    squares: Array,
    y: Array,
    weak: bool,
    every: int,
    values: Array,
    slopes: Array,
    factor: Array,
    vectors: Array,
) -> int:
    """Write f on a coarse grid to `values`, inf where it fails; return how often it was computed.

    every : 1 for the whole grid, 2 for half of it, like the fields of a chessboard; inf elsewhere.
    values : (len(SCREEN_U), len(SCREEN_V)).
    """
    place, nothing = np.empty(PLACE), np.empty(3)
    count = 0
    for i in range(len(SCREEN_U)):
        for j in range(len(SCREEN_V)):
            values[i, j] = math.inf
            if (i + j) % every == 0:
                place[U], place[V] = SCREEN_U[i], SCREEN_V[j]
                count += 1
                if (
                    evaluate(kind, squares, y, weak, place, 0, slopes, factor, vectors, nothing)
                    == 0
                ):
                    values[i, j] = place[VALUE]
    return count


@jit
def next_start(values: Array, seen: Array, n_seen: int, place: Array) -> bool:
    """Write the next start to `place`; return whether there is one.

    It is the best point of the grid that is not near a place seen (starts and ends of searches);
    one that has no better neighbour comes before one that has.
    """
    rows, columns = values.shape
    place[VALUE] = math.inf
    found_lowest = False
    point = np.empty(PLACE)
    for i in range(rows):
        for j in range(columns):
            value = values[i, j]
            if not value < math.inf:
                continue
            point[U], point[V] = SCREEN_U[i], SCREEN_V[j]
            if near_any(point, seen, n_seen, APART):
                continue
            lowest = True
            for a in range(max(i - 1, 0), min(i + 2, rows)):
                for b in range(max(j - 1, 0), min(j + 2, columns)):
                    lowest = lowest and not values[a, b] < value
            if found_lowest and not lowest:
                continue
            if value < place[VALUE] or (lowest and not found_lowest):
                place[U], place[V], place[VALUE] = point[U], point[V], value
            found_lowest = found_lowest or lowest
    return bool(place[VALUE] < math.inf)


@jit
def search(kind: int, squares: Array, y: Array, weak: bool, start: Array, best: Array) -> int:
    """Write the lowest point of f that is found to `best`; return how often f was computed.

    squares, y : (n, n) and (n,).  best : (PLACE,); its value is inf if no start could be factored.
    start : (2,), u and v of a fit before, or NaN. With it, one search begins there and one at
    `next_start`, so that a fit cannot stay in a valley that is no longer the lowest. Without it,
    `FOLLOWED` begin at points of the grid, one after the other. All rows choose these points: what
    is a valley for a thousand labels, some hundred of them may not show.
    """
    n = y.size
    slopes, factor, vectors = np.empty((n, n)), np.empty((n, n)), np.empty((4, n))
    values = np.empty((len(SCREEN_U), len(SCREEN_V)))
    seen = np.empty((2 * FOLLOWED, PLACE))  # starts and ends
    warm = start[0] == start[0] and start[1] == start[1]
    seen[0, U], seen[0, V] = start[0], start[1]
    best[VALUE] = math.inf
    count, n_seen = 0, 0
    for i in range(2 if warm else FOLLOWED):
        if i == int(warm):
            every = 2 if warm else 1
            count += screen(kind, squares, y, weak, every, values, slopes, factor, vectors)
        if i >= int(warm) and not next_start(values, seen, n_seen, seen[n_seen]):
            break
        # a start stays in front of its end
        end = seen[n_seen + 1]
        copy_place(seen[n_seen], end)
        count += descend(
            kind, squares, y, weak, end, best[VALUE], seen, n_seen, slopes, factor, vectors
        )
        n_seen += 2
        if end[VALUE] < best[VALUE]:
            copy_place(end, best)
    return count
