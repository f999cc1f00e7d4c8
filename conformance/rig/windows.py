"""Windows in which a bench measures, as short as they can be for who looks at no figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Measured = TypeVar("Measured")


def widening(
    seconds: float,
    measure: Callable[[float], Measured],
    is_enough: Callable[[Measured], bool],
    times: tuple[int, ...] = (1, 5, 25),
) -> Measured:
    """Measure in a window of so many seconds, and in longer ones while too little was in it.

    On a busy machine a window of milliseconds may be spent by others alone. The last one is
    judged.
    """
    for longer in times:
        measured = measure(seconds * longer)
        if is_enough(measured):
            break
    return measured
