"""A product of matrices whose sums have one fixed order: tall times narrow, nothing packed.

    C_ij += A_i0 B_0j + A_i1 B_1j + ...,    j < COLUMNS,

one fused multiply-add after the other, whatever the registers of the processor hold: every
processor with fused multiply-add gives the same digits, and so does every cut of the rows. BLAS
copies both factors first, which panels of 64 columns do not pay for. Here A is read where it lies.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from fastal._core.chunks import STRIDE
from fastal._core.emit import (
    DOUBLE,
    WHOLE,
    fetch_line,
    in_every_lane,
    loop,
    multiply_add,
    vector_at,
    zeros,
)
from fastal._core.jit import jit

# Columns of B and C.
COLUMNS = 16


# Vectors of a row of a tile. With two of them a tile of 6 rows has 12 sums in 16 registers, one of
# 12 rows 24 in 32, and a loop reads 8 or 14 numbers for 12 or 24 products: fewer than it could.
PARTS = 2


def _registers() -> tuple[int, int]:
    """Return lanes of a vector and rows of a tile: together they fill the registers."""
    wide = llvmlite.binding.get_host_cpu_features().get("avx512f", False)
    return (8, 12) if wide else (4, 6)


LANES, TILE = _registers()
WIDTH = PARTS * LANES  # columns of a tile; they divide COLUMNS

VECTOR = ir.VectorType(DOUBLE, LANES)

# Rows of the next tile that are fetched with each pass over a tile: all of them with four groups.
AHEAD = -(-TILE * WIDTH // (4 * COLUMNS))


def _vector(builder: Any, pointer: Any, part: int) -> Any:
    """Return a pointer to the vector of this number."""
    return vector_at(builder, pointer, WHOLE(part * LANES), VECTOR)


def _emit(
    builder: Any, rows: int, stride: int, a: Any, b: Any, c: Any, ahead: Any, count: Any
) -> None:
    """Emit C += A B for so many rows and WIDTH columns; all addresses are pointers to doubles."""
    places = [
        _vector(builder, builder.gep(c, [WHOLE(r * COLUMNS)]), part)
        for r in range(rows)
        for part in range(PARTS)
    ]
    sums = [builder.load(at, align=8) for at in places]

    def advance(k: Any, totals: list[Any]) -> list[Any]:
        own = builder.gep(a, [k])
        for r in range(AHEAD if rows > 1 else 0):
            fetch_line(builder, builder.gep(ahead, [builder.add(k, WHOLE(r * stride))]), 2)
        row_of_b = builder.gep(b, [builder.mul(k, WHOLE(COLUMNS))])
        factors = [builder.load(_vector(builder, row_of_b, part), align=8) for part in range(PARTS)]
        added = []
        for r in range(rows):
            value = builder.load(builder.gep(own, [WHOLE(r * stride)]))
            every = in_every_lane(builder, value, VECTOR)
            for part in range(PARTS):
                total = totals[r * PARTS + part]
                added.append(multiply_add(builder, every, factors[part], total))
        return added

    found = loop(builder, WHOLE(0), count, 1, sums, advance)
    for at, value in zip(places, found, strict=True):
        builder.store(value, at, align=8)


def _tile(rows: int, stride: int) -> Any:
    """Return the product for so many rows of A that lie `stride` doubles apart, WIDTH columns of B.

    A, B, C : addresses of doubles.  ahead : that of rows which come later.  count : columns of A.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

        def interpreted(A: int, B: int, C: int, ahead: int, count: int) -> None:
            if count > 0:
                product = _view(A, rows, count, stride) @ _view(B, count, WIDTH, COLUMNS)
                _view(C, rows, WIDTH, COLUMNS)[:] += product

        return interpreted

    def tile(
        typing_context: Any, A: Any, B: Any, C: Any, ahead: Any, count: Any
    ) -> Any:  # Numba's form
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to = DOUBLE.as_pointer()
            a, b, c, later = (builder.inttoptr(one, to) for one in arguments[:4])
            _emit(builder, rows, stride, a, b, c, later, arguments[4])
            return context.get_dummy_value()

        return types.void(*[types.int64] * 5), emit

    return intrinsic(tile)


def _emit_squares(builder: Any, z: Any, x: Any, stride: Any, d: Any, out: Any) -> None:
    """Emit the squared distances of one point from COLUMNS others."""

    def advance(f: Any, sums: list[Any]) -> list[Any]:
        value = builder.load(builder.gep(x, [builder.mul(f, stride)]))
        every = in_every_lane(builder, value, VECTOR)
        row = builder.gep(z, [builder.mul(f, WHOLE(COLUMNS))])
        added = []
        for part, total in enumerate(sums):
            difference = builder.fsub(builder.load(_vector(builder, row, part), align=8), every)
            added.append(multiply_add(builder, difference, difference, total))
        return added

    found = loop(builder, WHOLE(0), d, 1, [zeros(VECTOR)] * (COLUMNS // LANES), advance)
    for part, total in enumerate(found):
        builder.store(total, _vector(builder, out, part), align=8)


def _squares_to(typing_context: Any, z: Any, x: Any, stride: Any, d: Any, out: Any) -> Any:
    """Write the squared distances of one point of d features from COLUMNS others; addresses all.

    z : (d, COLUMNS).  x : the first feature of the point, the next one `stride` doubles further.
    out : (COLUMNS,).
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zs, xs, step, features, target = arguments
        to = DOUBLE.as_pointer()
        _emit_squares(
            builder, builder.inttoptr(zs, to), builder.inttoptr(xs, to), step, features,
            builder.inttoptr(target, to),
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), emit


def _view(address: int, m: int, width: int, step: int) -> Any:
    """Return (m, width) doubles at an address, for interpreted callers."""
    size = (m - 1) * step + width
    flat = np.ctypeslib.as_array((ctypes.c_double * size).from_address(int(address)))
    return np.lib.stride_tricks.as_strided(flat, (m, width), (8 * step, 8))


chunk_tile, chunk_row = _tile(TILE, STRIDE), _tile(1, STRIDE)
block_tile, block_row = _tile(TILE, COLUMNS), _tile(1, COLUMNS)

squares_to: Any
if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]

    def squares_to(z: int, x: int, stride: int, d: int, out: int) -> None:
        difference = _view(z, d, COLUMNS, COLUMNS) - _view(x, d, 1, stride)
        _view(out, 1, COLUMNS, COLUMNS)[0] = (difference**2).sum(axis=0)

else:
    squares_to = intrinsic(_squares_to)


@jit
def add_chunk_product(A: int, B: int, step: int, C: int, rows: int, groups: int, k: int) -> None:
    """Let C += A B for rows of a chunk and so many groups of columns.

    A : address of (rows, k), STRIDE doubles from row to row.  B : that of (k, COLUMNS), the next
    group `step` doubles further.  C : that of (groups, rows, COLUMNS).
    """
    whole = rows - rows % TILE
    # A tile of A stays in the first cache for all groups, B in the second one for all tiles.
    for r in range(0, whole, TILE):
        own = A + 8 * r * STRIDE
        later = own + 8 * TILE * STRIDE
        for g in range(groups):
            for j in range(0, COLUMNS, WIDTH):
                at = 8 * j
                chunk_tile(
                    own, B + 8 * g * step + at, C + 8 * (g * rows + r) * COLUMNS + at, later, k
                )
                later += 8 * AHEAD * STRIDE
    for r in range(whole, rows):
        own = A + 8 * r * STRIDE
        for g in range(groups):
            for j in range(0, COLUMNS, WIDTH):
                at = 8 * j
                chunk_row(own, B + 8 * g * step + at, C + 8 * (g * rows + r) * COLUMNS + at, own, k)


@jit
def add_block_product(A: int, B: int, step: int, C: int, rows: int, groups: int, k: int) -> None:
    """Do the same for rows of A that lie COLUMNS doubles apart."""
    whole = rows - rows % TILE
    for r in range(0, whole, TILE):
        own = A + 8 * r * COLUMNS
        for g in range(groups):
            for j in range(0, COLUMNS, WIDTH):
                at = 8 * j
                block_tile(
                    own, B + 8 * g * step + at, C + 8 * (g * rows + r) * COLUMNS + at, own, k
                )
    for r in range(whole, rows):
        own = A + 8 * r * COLUMNS
        for g in range(groups):
            for j in range(0, COLUMNS, WIDTH):
                at = 8 * j
                block_row(own, B + 8 * g * step + at, C + 8 * (g * rows + r) * COLUMNS + at, own, k)
