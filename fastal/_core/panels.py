"""A lower triangle in panels of eight rows, column by column.

Rows 8 p to 8 p + 7 are a panel: eight entries of column 0, then eight of column 1, up to the column
of its last row. Entry (i, j) with p = i // 8 is at 32 p (p + 1) + 8 j + i % 8. Whoever solves with
the triangle reads each panel from its first number to its last, and three panels side by side: one
entry of the solution serves 24 rows, and the memory has three streams to fetch ahead. One more
panel moves nothing, and the upper half takes no memory.

Sums have one fixed order, whatever the number of rows: of three panels every second column, and
where they end, of each panel every fourth, added up in pairs; with several right-hand sides at
once, one column after the other.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from fastal._core.emit import (
    DOUBLE,
    WHOLE,
    in_every_lane,
    in_pairs,
    loop,
    multiply_add,
    vector_at,
    zeros,
)
from fastal._core.jit import jit, jit_fused, jit_fused_part
from fastal._types import Array

# Rows of a panel; a line of the cache holds as many doubles.
TALL = 8

# Columns of a panel that are under way at once: enough to hide the latency of an addition.
UNDER_WAY = 4

# Panels that are read side by side, and columns of them: they fill the registers.
GROUP, GROUP_UNDER_WAY = 3, 2


def _lanes() -> int:
    """Return doubles of a vector: they change nothing but the speed, as each row sums by itself."""
    return 8 if llvmlite.binding.get_host_cpu_features().get("avx512f", False) else 4


LANES = _lanes()

# Right-hand sides that are solved at once: with the eight rows of a panel they fill the registers.
SIDES = 6 if LANES == 4 else 12


def panels_size(n: int) -> int:
    """Return how many doubles n rows need."""
    panels = -(-n // TALL)
    return TALL * TALL // 2 * panels * (panels + 1)


def new_panels(n: int) -> Array:
    """Return zeros for n rows that begin at the beginning of a line of the cache.

    Zeros, not empty: rows of a panel that are not there yet are read with the others.
    """
    size = panels_size(n)
    buffer = np.zeros(size + TALL)
    skip = -buffer.ctypes.data // 8 % TALL
    return buffer[skip : skip + size]


def diagonal(panels: Array, n: int) -> Array:
    """Return the diagonal of the first n rows."""
    i = np.arange(n)
    p = i // TALL
    found: Array = panels[TALL * TALL // 2 * p * (p + 1) + TALL * i + i % TALL]
    return found


def _emit(builder: Any, panels: list[Any], x: Any, count: Any, under_way: int) -> list[Any]:
    """Emit the sums of `count` columns of each panel, weighted by x; return their vectors.

    panels, x : pointers to doubles.  count : a multiple of `under_way`.
    """
    vector, halves = ir.VectorType(DOUBLE, LANES), TALL // LANES
    every_sum = len(panels) * halves

    def advance(j: Any, sums: list[Any]) -> list[Any]:
        added: list[Any] = []
        for part in range(under_way):
            column = builder.add(j, WHOLE(part))
            every = in_every_lane(builder, builder.load(builder.gep(x, [column])), vector)
            at = builder.mul(column, WHOLE(TALL))
            for panel in panels:
                for half in range(halves):
                    place = vector_at(builder, panel, builder.add(at, WHOLE(LANES * half)), vector)
                    entry = builder.load(place, align=8)
                    added.append(multiply_add(builder, entry, every, sums[len(added)]))
        return added

    start = [zeros(vector)] * (under_way * every_sum)
    sums = loop(builder, WHOLE(0), count, under_way, start, advance)
    return [in_pairs(builder, sums[k::every_sum]) for k in range(every_sum)]


def _subtracts(group: int, under_way: int) -> Any:
    """Return a function that subtracts the products of so many panels, read side by side.

    subtracts(panels, start, v, i, n) takes the products of row i and of those after it, up to the
    last one of the group and below n, with v[:i] from their entries of v.
    panels : the first i columns of the panel of row i at `start`, the other panels of the group
    behind it.  v : (>= n,).  i : a multiple of TALL.
    """

    def typed(typing_context: Any, panels: Any, start: Any, v: Any, i: Any, n: Any) -> Any:
        if not all(kind.layout == "C" and kind.ndim == 1 for kind in (panels, v)):
            raise TypingError("products of panels take contiguous vectors")
        return types.void(panels, types.int64, v, types.int64, types.int64), emit

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(place: int) -> Any:
            kind = signature.args[place]
            return context.make_array(kind)(context, builder, arguments[place]).data

        x, i, n = data(2), arguments[3], arguments[4]
        bases, row = [builder.gep(data(0), [arguments[1]])], i
        for _ in range(1, group):
            # Where the triangle ends, the last panel stands in for those that are not there.
            row = builder.add(row, WHOLE(TALL))
            there = builder.icmp_signed("<", row, n)
            length = builder.select(there, builder.mul(row, WHOLE(TALL)), WHOLE(0))
            bases.append(builder.gep(bases[-1], [length]))
        totals = _emit(builder, bases, x, i, under_way)
        vector = totals[0].type
        sums = cgutils.alloca_once(builder, DOUBLE, group * TALL)
        end = builder.add(i, WHOLE(group * TALL))

        def subtract(row: Any, nothing: list[Any]) -> list[Any]:
            entry, own = builder.gep(x, [row]), builder.gep(sums, [builder.sub(row, i)])
            builder.store(builder.fsub(builder.load(entry), builder.load(own)), entry)
            return nothing

        with builder.if_else(builder.icmp_signed("<=", end, n)) as (full, partly):
            with full:
                for k, total in enumerate(totals):
                    place = vector_at(builder, x, builder.add(i, WHOLE(LANES * k)), vector)
                    rest = builder.fsub(builder.load(place, align=8), total)
                    builder.store(rest, place, align=8)
            with partly:
                for k, total in enumerate(totals):
                    place = vector_at(builder, sums, WHOLE(LANES * k), vector)
                    builder.store(total, place, align=8)
                loop(builder, i, n, 1, [], subtract)
        return context.get_dummy_value()

    def interpreted(panels: Any, start: int, v: Any, i: int, n: int) -> None:
        for row in range(i, min(n, i + group * TALL), TALL):
            columns = panels[start : start + TALL * i].reshape(i, TALL)
            own = v[row : min(n, row + TALL)]
            own -= (v[:i] @ columns)[: own.size]
            start += TALL * (row + TALL)

    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        return interpreted
    return intrinsic(typed)


subtract_panel = _subtracts(1, UNDER_WAY)
subtract_group = _subtracts(GROUP, GROUP_UNDER_WAY)


def _emit_sides(builder: Any, a: Any, x: Any, stride: Any, count: Any) -> None:
    """Emit: of the TALL entries after the first `count` of SIDES vectors, subtract the products.

    a, x : pointers to doubles; the next vector is `stride` of them further than x.
    """
    vector, halves = ir.VectorType(DOUBLE, LANES), TALL // LANES
    sides = [builder.gep(x, [builder.mul(stride, WHOLE(r))]) for r in range(SIDES)]

    def advance(j: Any, sums: list[Any]) -> list[Any]:
        entries = builder.gep(a, [builder.mul(j, WHOLE(TALL))])
        places = [
            vector_at(builder, entries, WHOLE(LANES * half), vector) for half in range(halves)
        ]
        column = [builder.load(place, align=8) for place in places]
        added = []
        for r, side in enumerate(sides):
            every = in_every_lane(builder, builder.load(builder.gep(side, [j])), vector)
            own = zip(column, sums[r * halves :], strict=False)
            added += [multiply_add(builder, entry, every, total) for entry, total in own]
        return added

    sums = loop(builder, WHOLE(0), count, 1, [zeros(vector)] * (SIDES * halves), advance)
    for r, side in enumerate(sides):
        for half in range(halves):
            place = vector_at(builder, side, builder.add(count, WHOLE(LANES * half)), vector)
            known = builder.load(place, align=8)
            builder.store(builder.fsub(known, sums[r * halves + half]), place, align=8)


def _subtract_sides(
    typing_context: Any, panels: Any, start: Any, B: Any, row: Any, count: Any
) -> Any:
    """Subtract the products of a panel from the entries `count` to `count` + TALL of SIDES rows.

    panels : (>= start + 8 count,).  B : (>= row + SIDES, >= count + TALL), its rows from `row` on.
    """
    if not all(kind.layout == "C" for kind in (panels, B)):
        raise TypingError("`subtract_sides` takes contiguous arrays")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat = context.make_array(signature.args[0])(context, builder, arguments[0])
        rows = context.make_array(signature.args[2])(context, builder, arguments[2])
        stride = cgutils.unpack_tuple(builder, rows.shape)[1]
        first = builder.gep(flat.data, [arguments[1]])
        own = builder.gep(rows.data, [builder.mul(arguments[3], stride)])
        _emit_sides(builder, first, own, stride, arguments[4])
        return context.get_dummy_value()

    return types.void(panels, types.int64, B, types.int64, types.int64), emit


subtract_sides: Any
if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

    def subtract_sides(panels: Any, start: int, B: Any, row: int, count: int) -> None:
        columns = panels[start : start + TALL * count].reshape(count, TALL)
        own = B[row : row + SIDES]
        own[:, count : count + TALL] -= own[:, :count] @ columns

else:
    subtract_sides = intrinsic(_subtract_sides)


@jit_fused_part
def solve_triangle(T: Array, d: Array, w: Array) -> None:
    """Solve with the triangle at the end of a panel, in place.

    T : (64,), column by column.  d : (8,), reciprocals of its diagonal.  w : (8,).
    """
    # a chain without a division, and with one addition per row
    x0 = w[0] * d[0]
    x1 = (w[1] - T[1] * x0) * d[1]
    x2 = ((w[2] - T[2] * x0) - T[10] * x1) * d[2]
    x3 = (((w[3] - T[3] * x0) - T[11] * x1) - T[19] * x2) * d[3]
    x4 = ((((w[4] - T[4] * x0) - T[12] * x1) - T[20] * x2) - T[28] * x3) * d[4]
    x5 = (((w[5] - T[5] * x0) - T[13] * x1) - T[21] * x2) - T[29] * x3
    x5 = (x5 - T[37] * x4) * d[5]
    x6 = (((w[6] - T[6] * x0) - T[14] * x1) - T[22] * x2) - T[30] * x3
    x6 = ((x6 - T[38] * x4) - T[46] * x5) * d[6]
    x7 = (((w[7] - T[7] * x0) - T[15] * x1) - T[23] * x2) - T[31] * x3
    x7 = (((x7 - T[39] * x4) - T[47] * x5) - T[55] * x6) * d[7]
    w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7] = x0, x1, x2, x3, x4, x5, x6, x7


@jit_fused_part
def solve_last_triangle(T: Array, d: Array, w: Array) -> None:
    """Do the same for a panel that is not full; d, w : (< 8,)."""
    for r in range(w.size):
        x = w[r]
        for c in range(r):
            x -= T[TALL * c + r] * w[c]
        w[r] = x * d[r]


@jit_fused
def solve_panels(panels: Array, reciprocals: Array, n: int, v: Array) -> None:
    """Solve ``L v = v`` in place for the first n entries of v.

    panels : (>= panels_size(n),).  reciprocals : (>= n,), those of the diagonal.  v : (>= n,).
    """
    start = 0
    for i in range(0, n, TALL):
        group = i - i % (GROUP * TALL)
        # Of a panel that is not full, entries of rows beyond n are read and not used.
        if i == group:
            subtract_group(panels, start, v, i, n)
        else:
            inside = start + TALL * group
            subtract_panel(panels, inside, v[group:n], i - group, n - group)
        T = panels[start + TALL * i : start + TALL * (i + TALL)]
        d = reciprocals[i : min(n, i + TALL)]
        w = v[i : min(n, i + TALL)]
        if i + TALL <= n:
            solve_triangle(T, d, w)
        else:
            solve_last_triangle(T, d, w)
        start += TALL * (i + TALL)


@jit_fused
def solve_sides(panels: Array, reciprocals: Array, n: int, B: Array) -> None:
    """Solve ``L b = b`` in place for the first n entries of each row b of B.

    B : (m, >= n), C-contiguous. SIDES rows share one reading of a panel, which stays in the cache
    for all of them.
    """
    shared = B.shape[0] - B.shape[0] % SIDES
    whole = n - n % TALL
    start = 0
    for i in range(0, whole, TALL):
        T = panels[start + TALL * i : start + TALL * (i + TALL)]
        d = reciprocals[i : i + TALL]
        for row in range(0, shared, SIDES):
            subtract_sides(panels, start, B, row, i)
            for r in range(row, row + SIDES):
                solve_triangle(T, d, B[r][i : i + TALL])
        start += TALL * (i + TALL)
    if whole < n:
        T = panels[start + TALL * whole : start + TALL * (whole + TALL)]
        for r in range(shared):
            b = B[r]
            subtract_panel(panels, start, b, whole, n)
            solve_last_triangle(T, reciprocals[whole:n], b[whole:n])
    for r in range(shared, B.shape[0]):
        solve_panels(panels, reciprocals, n, B[r])


@jit
def solve_transposed(panels: Array, reciprocals: Array, n: int, v: Array) -> None:
    """Solve ``L^T v = v`` in place for the first n entries of v; arguments as `solve_panels`."""
    for p in range((n + TALL - 1) // TALL - 1, -1, -1):
        i = TALL * p
        start = TALL * TALL // 2 * p * (p + 1)
        rows = min(TALL, n - i)
        T = panels[start + TALL * i : start + TALL * (i + TALL)]
        d = reciprocals[i : i + rows]
        w = v[i : i + rows]
        for r in range(rows - 1, -1, -1):
            x = w[r]
            for c in range(r + 1, rows):
                x -= T[TALL * r + c] * w[c]
            w[r] = x * d[r]
        above = v[:i]
        if rows == TALL:
            a, b, c0, e, f, g, h, k = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
            for j in range(i):
                L = panels[start + TALL * j : start + TALL * (j + 1)]
                low = (L[0] * a + L[1] * b) + (L[2] * c0 + L[3] * e)
                high = (L[4] * f + L[5] * g) + (L[6] * h + L[7] * k)
                above[j] -= low + high
        else:
            for j in range(i):
                x = above[j]
                for r in range(rows):
                    x -= panels[start + TALL * j + r] * w[r]
                above[j] = x


@jit
def write_row(panels: Array, i: int, row: Array) -> None:
    """Write the entries up to the diagonal of row i; row : (> i,)."""
    p = i // TALL
    start = TALL * TALL // 2 * p * (p + 1) + i % TALL
    own = panels[start : start + TALL * i + 1]
    for j in range(i + 1):
        own[TALL * j] = row[j]


@jit
def read_rows(panels: Array, n: int, out: Array) -> None:
    """Write the first n rows up to their diagonal to `out`, (>= n, >= n); the rest of it stays."""
    for i in range(n):
        p = i // TALL
        start = TALL * TALL // 2 * p * (p + 1) + i % TALL
        own = panels[start : start + TALL * i + 1]
        row = out[i]
        for j in range(i + 1):
            row[j] = own[TALL * j]


@jit
def pack_rows(panels: Array, n: int, packed: Array) -> None:
    """Write the first n rows up to their diagonal one after the other, (n (n + 1) / 2,)."""
    k = 0
    for i in range(n):
        p = i // TALL
        start = TALL * TALL // 2 * p * (p + 1) + i % TALL
        for j in range(i + 1):
            packed[k] = panels[start + TALL * j]
            k += 1


@jit
def unpack_rows(packed: Array, n: int, panels: Array) -> None:
    """Undo `pack_rows`."""
    k = 0
    for i in range(n):
        p = i // TALL
        start = TALL * TALL // 2 * p * (p + 1) + i % TALL
        for j in range(i + 1):
            panels[start + TALL * j] = packed[k]
            k += 1
