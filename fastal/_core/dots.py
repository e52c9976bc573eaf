"""Dot products whose sums have one fixed order, in vector registers.

A compiler that may reorder a sum chooses the order by what surrounds it: the same kernel then gives
other last digits where it was inlined, compiled for another processor or read from the cache. Here
the order is written down: partial sums in vectors of four, added up in pairs, then what is left.
Every processor with fused multiply-add gives the same digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from fastal._core.emit import DOUBLE, INDEX, WHOLE, in_pairs, loop, multiply_add, vector_at, zeros

LANES = 4

# Vectors that are under way at once, over all rows: enough to hide the latency of an addition.
UNDER_WAY = 8

VECTOR = ir.VectorType(DOUBLE, LANES)


def _emit(builder: Any, rows: list[Any], x: Any, length: Any, parts: int) -> list[Any]:
    """Emit the products of the first entries at x with those at each of the rows; all pointers."""

    def load(pointer: Any, at: Any, kind: Any) -> Any:
        return builder.load(vector_at(builder, pointer, at, kind), align=8)

    def add_products(kind: Any, number: int) -> Callable[[Any, list[Any]], list[Any]]:
        """So many values of a kind a row, one after the other; sums row by row."""

        def advance(j: Any, sums: list[Any]) -> list[Any]:
            added = list(sums)
            for part in range(number):
                at = builder.add(j, WHOLE(LANES * part))
                factor = load(x, at, kind)
                for r, row in enumerate(rows):
                    i = r * number + part
                    added[i] = multiply_add(builder, load(row, at, kind), factor, sums[i])
            return added

        return advance

    def whole(step: int) -> Any:
        return builder.mul(builder.sdiv(length, WHOLE(step)), WHOLE(step))

    many, some = whole(LANES * parts), whole(LANES)
    sums = loop(
        builder, WHOLE(0), many, LANES * parts, [zeros(VECTOR)] * (len(rows) * parts),
        add_products(VECTOR, parts),
    )  # fmt: skip
    sums = [in_pairs(builder, sums[i : i + parts]) for i in range(0, len(sums), parts)]
    if parts > 1:
        sums = loop(builder, many, some, LANES, sums, add_products(VECTOR, 1))
    lanes = [[builder.extract_element(total, INDEX(i)) for i in range(LANES)] for total in sums]
    sums = [in_pairs(builder, terms) for terms in lanes]
    return loop(builder, some, length, 1, sums, add_products(DOUBLE, 1))


def _dots(typing_context: Any, rows: Any, x: Any, n: Any) -> Any:  # Numba's form
    """Return the products of the first n entries of each row with those of x.

    rows : tuple of 1, 2, 4 or 8 arrays (>= n,).  x : (>= n,).  All C-contiguous.
    """
    return _signature_of(rows, x, max(1, UNDER_WAY // len(rows)))


def _dot_as_in_four(typing_context: Any, row: Any, x: Any, n: Any) -> Any:  # Numba's form
    """Return what `dots` gives a row that is one of four: sums are in that order."""
    signature, emit = _signature_of(types.UniTuple(row, 1), x, UNDER_WAY // 4)

    def emit_one(context: Any, builder: Any, one: Any, arguments: Any) -> Any:
        rows = context.make_tuple(builder, signature.args[0], arguments[:1])
        found = emit(context, builder, signature, (rows, *arguments[1:]))
        return builder.extract_value(found, 0)

    return types.float64(row, x, types.int64), emit_one


def _signature_of(rows: Any, x: Any, parts: int) -> Any:
    """Return Numba's signature and the code, with so many vectors of each row under way."""
    if not all(kind.layout == "C" and kind.ndim == 1 for kind in (*rows, x)):
        raise TypingError("`dots` takes contiguous vectors")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(kind: Any, array: Any) -> Any:
            return context.make_array(kind)(context, builder, array).data

        kinds, (row_tuple, x_array, length) = signature.args, arguments
        arrays = cgutils.unpack_tuple(builder, row_tuple, len(kinds[0]))
        pointers = [data(kind, array) for kind, array in zip(kinds[0], arrays, strict=True)]
        sums = _emit(builder, pointers, data(kinds[1], x_array), length, parts)
        return context.make_tuple(builder, signature.return_type, sums)

    return types.UniTuple(types.float64, len(rows))(rows, x, types.int64), emit


dots: Any
dot_as_in_four: Any
if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

    def dots(rows: Any, x: Any, n: int) -> Any:
        return tuple(float(np.dot(row[:n], x[:n])) for row in rows)

    def dot_as_in_four(row: Any, x: Any, n: int) -> Any:
        return float(np.dot(row[:n], x[:n]))

else:
    dots = intrinsic(_dots)
    dot_as_in_four = intrinsic(_dot_as_in_four)
