"""How tensors are stored: a level drawn for each mode, an order of the modes, blocks; and operands as users make them."""

from __future__ import annotations

from random import Random

import numpy as np
from metamorphic.grammar import Operand

import sparseloom as sl
from sparseloom.formats.text import as_format

FIRST = "dddsssupb"
LATER = "dddssssupb"
TRIES = 20


def draw_format(random: Random, order: int) -> str:
    """A format for tensors of this order; what cannot be a format is drawn again."""
    if order == 0:
        return ""
    for _ in range(TRIES):
        text = _drawn(random, order)
        try:
            as_format(text, order)
        except sl.FormatError:
            continue
        return text
    return "d" * order


def _drawn(random: Random, order: int) -> str:
    if order == 2 and random.random() < 0.05:
        return random.choice(("do", "do:1,0"))
    if random.random() < 0.1:
        return "d" * order
    if random.random() < 0.04:
        return in_any_order(order)
    modes = list(range(order))
    if random.random() < 0.45:
        random.shuffle(modes)
    named = ":" + ",".join(map(str, modes)) if modes != sorted(modes) else ""
    if random.random() < 0.07 and order < 4:
        within = random.sample(modes, order)
        sizes = ",".join(str(random.randint(1, 3)) for _ in modes)
        places = "d" * order if random.random() < 0.6 else "".join(random.choice("ddsu") for _ in modes)
        return f"{_letters(random, order)}{places}:{','.join(map(str, (*modes, *within)))}/{sizes}"
    return _letters(random, order) + named


def _letters(random: Random, order: int) -> str:
    """One level below another. A singleton level goes below entries that may repeat, and below singletons."""
    levels: list[str] = []
    for k in range(order):
        follows = bool(levels) and levels[-1][0] in "uq"
        letter = "q" if follows and random.random() < 0.75 else random.choice(LATER if k else FIRST)
        levels.append(letter + ("~" if letter in "suq" and random.random() < 0.06 else ""))
    return "".join(levels)


def in_any_order(order: int) -> str:
    """The format of a list of entries that are in no order and may repeat."""
    return "u~" + "q~" * (order - 1) + ("+" if order > 1 else "")


def store(operand: Operand) -> sl.Tensor:
    """The tensor. A list of entries in any order is made of its arrays, repeated entries included."""
    if operand.format == "":
        return sl.asarray(operand.dense.astype(operand.values.dtype))
    if operand.format == in_any_order(len(operand.shape)):
        arrays = {f"crd{k}": np.ascontiguousarray(row, np.int32) for k, row in enumerate(operand.coordinates)}
        arrays |= {"pos0": np.array([0, len(operand.values)], np.int32), "values": operand.values.copy()}
        return sl.from_arrays(operand.format, operand.shape, arrays, fill=operand.fill)
    if not set(operand.format.split(":")[0]) - {"d"}:
        return sl.asarray(operand.dense.astype(operand.values.dtype), format=operand.format)
    return sl.from_coo(operand.coordinates, operand.values, shape=operand.shape, format=operand.format, fill=operand.fill)
