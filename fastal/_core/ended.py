"""How a compiled selection ends; shared by the eager and the lazy one."""

from __future__ import annotations

from fastal._core.jit import jit_part
from fastal._core.symbols import state_push, state_stopped_at

# All labels are there; the rule stopped; a label cannot be taken (the status says why); there is no
# room for another one.
DONE, STOPPED, FAILED, FULL = 0, 1, 2, 3

# Status of a kernel that finds the state other than it must be, and has written nothing.
BROKEN = -(2**62)


@jit_part
def stops(rule: int, r: float) -> bool:
    """Give a bound to the rule at this address (0: none); return whether it stops there."""
    if rule == 0:
        return False
    before = state_stopped_at(rule)
    # a bound is finite, and memory for it small: a negative status is not looked at
    return state_push(rule, r) == 1 and before == 0
