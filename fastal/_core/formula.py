"""Formulas: arithmetic of doubles without a branch, run once on symbols instead of being analysed.

Numba analyses a function statement by statement, and once more in every caller that it becomes part
of: at a first use that takes longer than anything else. A formula is plain Python that is run on
symbols, and each operation emits its instruction. Products are fused with sums, as the compiler
sees fit, and nothing else is reordered: the digits are those of `jit_fused`, whoever the caller is.
With the JIT disabled a formula is run on numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from fastal._core.emit import DOUBLE, WHOLE

FUSED = ("contract",)


class Symbol:
    """A double that will be known when the code runs."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def of(self, other: Any) -> Any:
        """Return the value of another symbol, or of a number."""
        return other.value if isinstance(other, Symbol) else DOUBLE(float(other))

    def emit(self, name: str, left: Any, right: Any) -> Any:
        """Return the symbol of an operation, by the name of its instruction for integers."""
        instruction = getattr(self.builder, "f" + name)
        return Symbol(self.builder, instruction(self.of(left), self.of(right), flags=FUSED))

    def compare(self, sign: str, other: Any) -> Truth:
        """Return whether a comparison holds; never of what is no number."""
        return Truth(self.builder, self.builder.fcmp_ordered(sign, self.value, self.of(other)))

    def __add__(self, other: Any) -> Any:
        return self.emit("add", self, other)

    def __sub__(self, other: Any) -> Any:
        return self.emit("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.emit("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.emit("mul", self, other)

    def __truediv__(self, other: Any) -> Any:
        return self.emit("div", self, other)

    def __neg__(self) -> Symbol:
        return Symbol(self.builder, self.builder.fneg(self.value, flags=FUSED))

    def __lt__(self, other: Any) -> Truth:
        return self.compare("<", other)

    def __gt__(self, other: Any) -> Truth:
        return self.compare(">", other)

    __radd__, __rmul__ = __add__, __mul__


class Bits(Symbol):
    """The 64 bits of such a double, as an unsigned integer."""

    __slots__ = ()

    def of(self, other: Any) -> Any:
        """Return the value of other bits, or of an integer."""
        return other.value if isinstance(other, Symbol) else WHOLE(int(other))

    def emit(self, name: str, left: Any, right: Any) -> Any:
        """Return the bits that an instruction gives."""
        return Bits(self.builder, getattr(self.builder, name)(self.of(left), self.of(right)))

    def __or__(self, other: Any) -> Any:
        return self.emit("or_", self, other)

    def __lshift__(self, other: Any) -> Any:
        return self.emit("shl", self, other)

    def __rshift__(self, other: Any) -> Any:
        return self.emit("lshr", self, other)

    def __eq__(self, other: Any) -> Any:
        return Truth(self.builder, self.builder.icmp_unsigned("==", self.value, self.of(other)))

    __hash__ = None  # type: ignore[assignment]


class Truth(Symbol):
    """Whether something holds."""

    __slots__ = ()


def bits(x: Any) -> Any:
    """Return the bits of a double."""
    if isinstance(x, Symbol):
        return Bits(x.builder, x.builder.bitcast(x.value, WHOLE))
    return np.float64(x).view(np.uint64)


def double(x: Any) -> Any:
    """Return the double that has these bits."""
    if isinstance(x, Symbol):
        return Symbol(x.builder, x.builder.bitcast(x.value, DOUBLE))
    return np.uint64(x).view(np.float64)


def choose(condition: Any, this: Any, other: Any) -> Any:
    """Return one of two doubles; both are computed."""
    if isinstance(condition, Truth):
        builder = condition.builder
        of = Symbol(builder, None).of
        return Symbol(builder, builder.select(condition.value, of(this), of(other)))
    return this if condition else other


def square_root(x: Any) -> Any:
    """Return the square root of a double."""
    if isinstance(x, Symbol):
        function = cgutils.get_or_insert_function(
            x.builder.module, ir.FunctionType(DOUBLE, [DOUBLE]), "llvm.sqrt.f64"
        )
        return Symbol(x.builder, x.builder.call(function, [x.value], fastmath=FUSED))
    return np.sqrt(x)


def formula(function: Callable[..., Any]) -> Any:
    """Return a formula for compiled callers; other formulas call it as ``formula.on``.

    It takes doubles and returns one, or several of doubles and truths.
    """
    numbers = len(signature(function).parameters)

    @wraps(function)
    def interpreted(*given: float) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(np.float64, given))

    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        interpreted.on = function  # type: ignore[attr-defined]
        return interpreted

    # What it returns, from a run on numbers.
    sample = interpreted(*[1.0] * numbers)
    kinds = tuple(
        types.boolean if isinstance(one, bool | np.bool_) else types.float64
        for one in (sample if isinstance(sample, tuple) else (sample,))
    )
    returns = types.Tuple(kinds) if isinstance(sample, tuple) else types.float64

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = function(*(Symbol(builder, one) for one in arguments))
        if not isinstance(found, tuple):
            return found.value
        return context.make_tuple(builder, returns, [one.value for one in found])

    # Numba's form has one name per argument.
    names = ", ".join(f"a{i}" for i in range(numbers))
    space: dict[str, Any] = {}
    exec(f"def {function.__name__}(context, {names}): return made", space)
    space["made"] = returns(*[types.float64] * numbers), emit
    made: Any = intrinsic(space[function.__name__])
    made.on, made.py_func = function, interpreted
    return made
