"""Options of the form ``NAME:VALUE`` and ``NAME=FILE``, and how a subcommand is declared."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from sparseloom.core.dtypes import DType, value_dtype
from sparseloom.core.errors import SparseloomError

Subcommands = Any  # argparse has no public name for it
Execute = Callable[[argparse.Namespace], int]

_NAME = re.compile(r"[^\W\d]\w*")


class OptionError(SparseloomError, ValueError):
    """An option of the command line cannot be read."""


def add_subcommand(subcommands: Subcommands, name: str, execute: Execute, about: str, examples: str) -> argparse.ArgumentParser:
    """Declare a subcommand whose help ends in examples."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        name,
        help=about[0].lower() + about.partition(".")[0][1:],
        description=about,
        epilog="examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(execute=execute)
    return parser


def add_statement(parser: argparse.ArgumentParser) -> None:
    """The arguments that ``compile`` and ``run`` share: the statement, how its tensors are stored, and how its loops run."""
    parser.add_argument("statement", help='index notation, such as "y(i) = A(i,j) * x(j)"')
    add_formats(parser)
    parser.add_argument(
        "-t", "--dtype", action="append", default=[], metavar="[NAME:]DTYPE",
        help="what an operand holds (without a name: every operand), float64 if not said; may be repeated",
    )  # fmt: skip
    add_schedule(parser)
    parser.add_argument(
        "--workspace", metavar="KIND",
        help="what rows of a sparse result are built in where their entries come in no order: dense, hash or sort",
    )  # fmt: skip
    add_semiring(parser)


def add_semiring(parser: argparse.ArgumentParser) -> None:
    """What the operators mean."""
    parser.add_argument("--semiring", metavar="NAME", help="what + and * mean: min_plus, max_plus, or_and, ...")


def add_formats(parser: argparse.ArgumentParser) -> None:
    """How tensors are stored."""
    parser.add_argument(
        "-f", "--format", action="append", default=[], metavar="NAME:FORMAT",
        help="how a tensor is stored: csr, csc, coo, dense, ... or letters such as ds:1,0 (see 'sparseloom formats'); may be repeated",
    )  # fmt: skip


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """How the loops run."""
    parser.add_argument(
        "-s", "--schedule", default=None, metavar="STEPS",
        help='how the loops run, as in "split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces)"',
    )  # fmt: skip


def named_values(given: Sequence[str], separator: str, option: str, example: str) -> dict[str, str]:
    """Read ``NAME<separator>VALUE`` options; only the first separator counts, since formats may have colons of their own."""
    found: dict[str, str] = {}
    for text in given:
        name, mark, value = (part.strip() for part in text.partition(separator))
        if not mark or not value or not _NAME.fullmatch(name):
            raise OptionError(f"cannot read {option} {text}: it must be NAME{separator}VALUE\n  help: write for example {option} {example}")
        if name in found:
            raise OptionError(f"{option} names {name} twice: {found[name]} and {value}")
        found[name] = value
    return found


def dtypes(given: Sequence[str], names: Sequence[str]) -> dict[str, DType]:
    """The dtypes that ``-t`` gives to the operands ``names``; ``-t float32`` without a name is for all of them."""
    everyone = [text for text in given if ":" not in text]
    found = {name: value_dtype(text.strip()) for text in everyone for name in names}
    named = named_values([text for text in given if ":" in text], ":", "-t", "A:float32")
    require_known(named, names, "-t")
    return found | {name: value_dtype(text) for name, text in named.items()}


def extents(given: Sequence[str]) -> dict[str, int]:
    """How far variables run, from ``-d i:1000``."""
    found = {}
    for name, text in named_values(given, ":", "-d", "i:1000").items():
        if not re.fullmatch(r"[0-9]{1,18}", text.replace("_", "")):
            raise OptionError(f"cannot read -d {name}:{text}: {text!r} is not a whole number\n  help: write for example -d {name}:1000")
        found[name] = int(text)
    return found


def require_known(given: dict[str, Any], names: Sequence[str], option: str) -> None:
    """Refuse a name that the statement does not have."""
    for name in given:
        if name not in names:
            raise OptionError(f"{option} names {name}, but the statement has {', '.join(names)}")
