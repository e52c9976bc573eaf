"""Columns of a tall matrix in chunks that are allocated when they are needed.

Entry t of row i lies in chunk t // CHUNK, at [i, t % CHUNK]. Compiled code knows chunks by their
addresses, so that one more of them moves nothing; who holds the table keeps the chunks alive.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import config, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from fastal._types import Array

# Columns of a chunk.
CHUNK = 256

# Doubles from row to row: whole lines of the cache, and no power of two, whose rows would all
# compete for the same few of them.
STRIDE = CHUNK + 8

LINE = 64  # bytes


def aligned(size: int) -> Array:
    """Return so many doubles, at the beginning of a line of the cache."""
    whole = np.empty(size + LINE // 8)
    skip = -whole.ctypes.data % LINE // 8
    return whole[skip : skip + size]


def new_chunk(rows: int) -> Array:
    """Return the memory of one chunk, (rows, STRIDE)."""
    return aligned(rows * STRIDE).reshape(rows, STRIDE)


def _chunk_at(typing_context: Any, table: Any, c: Any, rows: Any) -> Any:  # Numba's form
    """Return chunk c of a table of addresses as an array (rows, STRIDE)."""
    kind = types.Array(types.float64, 2, "C")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table_kind = signature.args[0]
        addresses = context.make_array(table_kind)(context, builder, arguments[0])
        address = builder.load(builder.gep(addresses.data, [arguments[1]]))
        array = context.make_array(kind)(context, builder)
        intp = context.get_value_type(types.intp)
        populate_array(
            array,
            data=builder.inttoptr(address, context.get_value_type(types.CPointer(types.float64))),
            shape=[arguments[2], intp(STRIDE)],
            strides=[intp(8 * STRIDE), intp(8)],
            itemsize=intp(8),
            meminfo=None,
        )
        return array._getvalue()

    return kind(table, types.int64, types.int64), emit


chunk_at: Any
if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

    def chunk_at(table: Any, c: int, rows: int) -> Any:
        doubles = (ctypes.c_double * (rows * STRIDE)).from_address(int(table[c]))
        return np.ctypeslib.as_array(doubles).reshape(rows, STRIDE)

else:
    chunk_at = intrinsic(_chunk_at)
