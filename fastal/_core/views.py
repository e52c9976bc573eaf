"""Parts of arrays, for kernels whose indices are known to be right.

Numba's own slices look whether an index counts from the end, and whether it lies beyond it: at a
first use that is much to compile, and a loop may fail to become one over vectors. A view holds no
reference to its array, which lives as long as the kernel runs.
"""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

VECTOR = types.Array(types.float64, 1, "C")


def _view(context: Any, builder: Any, data: Any, start: Any, stop: Any) -> Any:
    """Emit the array of the doubles from `start` to `stop` behind an address."""
    intp = context.get_value_type(types.intp)
    array = context.make_array(VECTOR)(context, builder)
    populate_array(
        array,
        data=builder.gep(data, [start]),
        shape=[builder.sub(stop, start)],
        strides=[intp(8)],
        itemsize=intp(8),
        meminfo=None,
    )
    return array._getvalue()


def _part(typing_context: Any, v: Any, start: Any, stop: Any) -> Any:  # Numba's form
    """Return the entries `start` to `stop` of a contiguous vector."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = context.make_array(signature.args[0])(context, builder, arguments[0])
        return _view(context, builder, whole.data, *arguments[1:])

    return VECTOR(v, types.int64, types.int64), emit


def _row_part(typing_context: Any, A: Any, i: Any, start: Any, stop: Any) -> Any:  # Numba's form
    """Return the entries `start` to `stop` of row i of a contiguous matrix."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = cgutils.unpack_tuple(builder, matrix.shape)[1]
        row = builder.gep(matrix.data, [builder.mul(arguments[1], width)])
        return _view(context, builder, row, *arguments[2:])

    return VECTOR(A, types.int64, types.int64, types.int64), emit


part: Any
row_part: Any
if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

    def part(v: Any, start: int, stop: int) -> Any:
        return v[start:stop]

    def row_part(A: Any, i: int, start: int, stop: int) -> Any:
        return A[i, start:stop]

else:
    part, row_part = intrinsic(_part), intrinsic(_row_part)
