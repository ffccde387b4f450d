"""``sparseloom formats``: the storage formats, and what one of them stores for a small tensor."""

from __future__ import annotations

import argparse

import numpy as np

from sparseloom.cli.arguments import OptionError, Subcommands, add_subcommand
from sparseloom.formats.format import Format
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, dia, ell
from sparseloom.formats.text import parse_format
from sparseloom.tensor.creation import asarray

ABOUT = "List the named formats, or show the arrays in which a format stores a small tensor."
EXAMPLES = """
sparseloom formats
sparseloom formats csr
sparseloom formats sss:2,0,1
"""

MOST_MODES = 5
NAMED: tuple[tuple[Format, str], ...] = (
    (dense(2), "every coordinate"),
    (csr, "rows of compressed coordinates"),
    (csc, "columns of compressed coordinates"),
    (dcsr, "csr without the empty rows"),
    (dcsc, "csc without the empty columns"),
    (coo(2), "one tuple of coordinates per entry"),
    (csf(3), "a tree of compressed levels"),
    (bcsr((2, 2)), "rows of dense blocks"),
    (ell, "rows padded to one width"),
    (dia, "diagonals"),
)
_LETTERS = """\
letters: d dense, s compressed, u compressed with repeated coordinates, q singleton, p padded, b bitmap, o offset; one per level,
from the root down.
':1,0' behind them gives the mode that each level stores, '/2,2' the size of blocks."""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "formats", execute, ABOUT, EXAMPLES)
    parser.add_argument("format", nargs="?", help="the format to show: a name, or letters such as ds:1,0")


def execute(options: argparse.Namespace) -> int:
    """Print the list, or one example."""
    if options.format is None:
        print("\n".join(f"{format!s:10}  {format.text:17}  {about}" for format, about in NAMED))
        print(f"\n{_LETTERS}")
    else:
        print(example(parse_format(options.format)))
    return 0


def example(format: Format) -> str:
    """A small tensor and the arrays that store it."""
    if format.order > MOST_MODES:
        raise OptionError(f"{format} has {format.order} modes, and pictures are drawn of up to {MOST_MODES}")
    tensor = np.zeros((4, 4) if format.order == 2 else (3,) * format.order)
    entries = range(tensor.size) if format.is_dense else [k for k in range(tensor.size) if k * k % 7 == 2]
    for value, place in enumerate(entries, 1):
        tensor.flat[place] = value
    stored = asarray(tensor, format=format)
    levels = [
        f"  level {k}: {type(level).__name__.lower()} over mode {mode}"
        for k, (level, mode) in enumerate(zip(format.levels, format.modes, strict=True))
    ]
    arrays = [f"  {name:8}{' '.join(f'{value:g}' for value in np.atleast_1d(array).tolist())}" for name, array in stored.arrays.items()]
    shown = np.array2string(tensor, formatter={"float_kind": lambda value: f"{value:g}" if value else "."})
    return "\n".join([f"{format} ({format.text})", *levels, "stores", *(f"  {line}" for line in shown.splitlines()), "as", *arrays])
