"""One call of an array function, as a text that means the same of arrays in NumPy and of tensors, and what all of them draw.

In a text ``np`` is NumPy in both cases, ``sl`` and ``api`` are NumPy or the package and its array-API namespace, ``linalg`` is
``np.linalg`` or the package, and ``A``, ``B``, ... are the operands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from attack.arrays import pick
from attack.function_operands import DTYPES, Rng, draw_numbers, draw_shape, draw_tensor

import sparseloom as sl

SCALARS: tuple[Any, ...] = (
    0,
    1,
    2,
    3,
    -1,
    -3,
    127,
    200,
    300,
    70000,
    2**40,
    2**63,
    -200,
    True,
    False,
    0.5,
    -2.0,
    float("nan"),
    float("inf"),
    1j,
)


@dataclass
class Call:
    """One call: its text, and the operands as arrays and as tensors. ``function`` is what is called, for the table of differences."""

    rng: Rng
    function: str = ""
    text: str = ""
    arrays: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)

    def operand(
        self, name: str, dtypes: str = "any", shape: tuple[int, ...] | None = None, order: int | None = None, tame: bool = False
    ) -> Any:
        """Draw an operand; gives its array."""
        made = draw_shape(self.rng, order) if shape is None else shape
        self.arrays[name], self.tensors[name] = draw_tensor(self.rng, made, pick(self.rng, DTYPES[dtypes]), tame)
        return self.arrays[name]

    def plain(self, name: str, value: Any) -> None:
        """An operand that is no tensor."""
        self.arrays[name], self.tensors[name] = value, value

    def described(self) -> str:
        """The call with its operands, for a report."""
        lines = [self.text]
        for name, array in self.arrays.items():
            tensor = self.tensors[name]
            how = f"{tensor.format}, fill {tensor.fill!r}, {tensor.nnz} stored" if isinstance(tensor, sl.Tensor) else type(tensor).__name__
            lines.append(f"  {name} = {array!r}  # {how}")
        return "\n".join(lines)


def broadcast_shape(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that mostly broadcasts with another."""
    if rng.random() < 0.04:
        return draw_shape(rng)
    cut = int(rng.integers(len(shape) + 1)) if rng.random() < 0.3 else 0
    return tuple(1 if rng.random() < 0.15 else size for size in shape[cut:])


def draw_second(call: Call, dtypes: str, shape: tuple[int, ...]) -> str:
    """The other operand of a binary function: a tensor, an array, a number of Python's or NumPy's."""
    rng = call.rng
    match rng.integers(6):
        case 0:
            small = [s for s in SCALARS if dtypes != "bits" or isinstance(s, int)]
            return (
                repr(pick(rng, [s for s in small if dtypes == "any" or not isinstance(s, complex)]))
                .replace("nan", "np.nan")
                .replace("inf", "np.inf")
            )
        case 1:
            call.plain("s", draw_numbers(rng, (), pick(rng, DTYPES[dtypes]))[()])
            return "s"
        case 2:
            call.plain("X", np.asarray(draw_numbers(rng, broadcast_shape(rng, shape), pick(rng, DTYPES[dtypes]))))
            return "X"
    call.operand("B", dtypes, broadcast_shape(rng, shape))
    return "B"


def draw_axis(call: Call, order: int, several: bool = True, none: bool = True) -> str:
    """``, axis=...``, or nothing; now and then one that does not exist."""
    rng = call.rng
    if none and rng.random() < 0.25:
        return pick(rng, ("", ", axis=None"))
    if not order or rng.random() < 0.03:
        return f", axis={pick(rng, (-1, 0, 1, 3, -4))}"
    if several and rng.random() < 0.3:
        chosen = rng.permutation(order)[: int(rng.integers(order + 1))]
        return f", axis={tuple(int(mode) - order * int(rng.integers(2)) for mode in chosen)}"
    return f", axis={int(rng.integers(-order, order))}"
