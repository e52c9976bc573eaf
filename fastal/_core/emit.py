"""What the kernels that write their own instructions share: loops, vectors, fused sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

DOUBLE, WHOLE, INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
BYTE = ir.IntType(8).as_pointer()


def loop(
    builder: Any, start: Any, stop: Any, step: int, values: list[Any],
    advance: Callable[[Any, list[Any]], list[Any]],
) -> list[Any]:  # fmt: skip
    """Emit a loop over j from `start` to `stop` that turns values into `advance(j, values)`.

    `advance` must emit no blocks of its own.
    """
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    before = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(WHOLE)
    j.add_incoming(start, before)
    carried = [builder.phi(value.type) for value in values]
    for phi, value in zip(carried, values, strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed("<", j, stop), body, end)
    builder.position_at_end(body)
    for phi, value in zip(carried, advance(j, carried), strict=True):
        phi.add_incoming(value, body)
    j.add_incoming(builder.add(j, WHOLE(step)), body)
    builder.branch(head)
    builder.position_at_end(end)
    return carried


def zeros(vector: Any) -> Any:
    """Return a vector of zeros."""
    return ir.Constant(vector, [0.0] * vector.count)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Emit a b + c, rounded once where the processor can; of doubles or of vectors."""
    kind = c.type
    name = "llvm.fmuladd." + ("f64" if kind == DOUBLE else f"v{kind.count}f64")
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), name
    )
    return builder.call(function, [a, b, c])


def in_every_lane(builder: Any, value: Any, vector: Any) -> Any:
    """Emit a vector of one value throughout."""
    none = ir.Constant(vector, ir.Undefined)
    first = ir.Constant(ir.VectorType(INDEX, vector.count), [0] * vector.count)
    return builder.shuffle_vector(builder.insert_element(none, value, INDEX(0)), none, first)


def vector_at(builder: Any, pointer: Any, at: Any, vector: Any) -> Any:
    """Return a pointer to the vector that begins `at` doubles after a pointer."""
    return builder.bitcast(builder.gep(pointer, [at]), vector.as_pointer())


def in_pairs(builder: Any, terms: list[Any]) -> Any:
    """Emit the sum of 1, 2, 4, ... terms, pair by pair."""
    while len(terms) > 1:
        terms = [builder.fadd(a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def fetch_line(builder: Any, pointer: Any, nearness: int) -> None:
    """Emit a request for a line that will be read: 3, into all caches of data; 0, to use once."""
    function = builder.module.declare_intrinsic(
        "llvm.prefetch", [BYTE], ir.FunctionType(ir.VoidType(), [BYTE, *[INDEX] * 3])
    )
    builder.call(function, [builder.bitcast(pointer, BYTE), INDEX(0), INDEX(nearness), INDEX(1)])
