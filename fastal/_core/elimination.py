"""One step of the factorisation for a block of columns, which stay in registers.

    v_j - sum_r V_ri V_rj,    j in a block of WIDTH columns,

by four rows at a time: their products are added up first, then subtracted. The sums have this one
order whatever the width of the registers is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from fastal._core.emit import DOUBLE, WHOLE, in_every_lane, loop, vector_at

# Columns of a block, doubles of a vector, rows whose products are added up.
WIDTH, LANES, TOGETHER = 16, 4, 4

VECTOR = ir.VectorType(DOUBLE, LANES)

# Products may be fused with the sums that they are part of; nothing is reordered.
FUSED = ("contract",)


def _emit(builder: Any, V: Any, stride: Any, t: Any, i: Any, first: Any) -> None:
    """Emit the step for the columns from `first` on.  V, stride : where row 0 is, how far row 1."""

    def row_at(r: Any) -> Any:
        return builder.gep(V, [builder.mul(r, stride)])

    def vectors(row: Any) -> list[Any]:
        return [
            vector_at(builder, row, builder.add(first, WHOLE(lane)), VECTOR)
            for lane in range(0, WIDTH, LANES)
        ]

    def subtract(rows: int) -> Any:
        """So many rows: their products with their own entry of column i, added up."""

        def advance(r: Any, values: list[Any]) -> list[Any]:
            sums: list[Any] = []
            for k in range(rows):
                row = row_at(builder.add(r, WHOLE(k)))
                every = in_every_lane(builder, builder.load(builder.gep(row, [i])), VECTOR)
                products = [
                    builder.fmul(every, builder.load(at, align=8), flags=FUSED)
                    for at in vectors(row)
                ]
                if sums:
                    pairs = zip(sums, products, strict=True)
                    products = [builder.fadd(a, b, flags=FUSED) for a, b in pairs]
                sums = products
            pairs = zip(values, sums, strict=True)
            return [builder.fsub(value, total, flags=FUSED) for value, total in pairs]

        return advance

    places = vectors(row_at(t))
    values = [builder.load(at, align=8) for at in places]
    grouped = builder.sub(t, builder.srem(t, WHOLE(TOGETHER)))
    values = loop(builder, WHOLE(0), grouped, TOGETHER, values, subtract(TOGETHER))
    values = loop(builder, grouped, t, 1, values, subtract(1))
    for at, value in zip(places, values, strict=True):
        builder.store(value, at, align=8)


def _subtract_rows(typing_context: Any, V: Any, t: Any, i: Any, first: Any) -> Any:  # Numba's form
    """Subtract ``sum_{r<t} V_ri V_r`` from row t of V, in the columns from `first` on.

    V : C-contiguous; row t is written in WIDTH columns, rows above are only read.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, matrix.shape)[1]
        _emit(builder, matrix.data, stride, *arguments[1:])
        return context.get_dummy_value()

    return types.void(V, types.int64, types.int64, types.int64), emit


subtract_rows: Any
if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

    def subtract_rows(V: Any, t: int, i: int, first: int) -> None:
        """Do the same with NumPy."""
        block = V[: t + 1, first : first + WIDTH]
        grouped = t - t % TOGETHER
        for r in range(0, grouped, TOGETHER):
            products = V[r : r + TOGETHER, i, None] * block[r : r + TOGETHER]
            block[t] -= products[0] + products[1] + products[2] + products[3]
        for r in range(grouped, t):
            block[t] -= V[r, i] * block[r]

else:
    subtract_rows = intrinsic(_subtract_rows)
