"""Programs and operands of the command line: ``-f A:csr -i A=a.mtx``, ``-i x=-``, ``-i alpha=0.5``, and random ones for the rest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from sparseloom.calls.evaluation import kernel_for
from sparseloom.calls.kernel import Kernel
from sparseloom.calls.supplied import USUAL_EXTENT, Wanted
from sparseloom.cli.arguments import OptionError, extents, named_values, require_known
from sparseloom.cli.streams import is_stream, read_named
from sparseloom.cli.terminal import plural, working
from sparseloom.core.algebra import semiring
from sparseloom.core.dtypes import FLOAT64, DType
from sparseloom.core.errors import ShapeError
from sparseloom.iteration.rows import known_workspace
from sparseloom.notation.script import read_script
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """The arguments that ``run`` and ``explore`` share: files, and what is random where there is none."""
    parser.add_argument(
        "-i", "--input", action="append", default=[], metavar="NAME=FILE",
        help="an operand's file (.mtx, .tns, .npz, .npy, .mat, .h5; - is the standard input), or a number for a scalar; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "-d", "--extent", action="append", default=[], metavar="VARIABLE:SIZE",
        help=f"how far an index variable runs where no file says it (default: {USUAL_EXTENT}); may be repeated",
    )  # fmt: skip
    parser.add_argument("--density", type=float, default=0.01, help="how full random sparse tensors are (default: 0.01)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of random tensors (default: 0)")


def read_problem(options: argparse.Namespace) -> Wanted:
    """The program, with the formats that are given beside it."""
    formats = named_values(options.format, ":", "-f", "A:csr")
    problem = Wanted(options.statement, read_script(options.statement, tuple(formats)), formats)
    require_known(formats, tuple(dict(problem.accesses)), "-f")
    twice = [name for name in formats if name in problem.script.formats]
    if twice:
        raise OptionError(f"-f gives a format to {twice[0]}, and so does the program\n  help: leave one of them away")
    if options.seed < 0:
        raise OptionError(f"--seed is a whole number, at least 0, not {options.seed}")
    return problem


def asked_extents(problem: Wanted, options: argparse.Namespace) -> dict[str, int]:
    """How far variables run, as ``-d`` says."""
    asked = extents(options.extent)
    require_known(asked, problem.variables, "-d")
    return asked


def given_operands(problem: Wanted, inputs: Sequence[str], dtype_of: Mapping[str, DType]) -> dict[str, Tensor]:
    """The operands that come from files, or are numbers."""
    files = named_values(inputs, "=", "-i", "A=a.mtx")
    require_known(files, problem.operands, "-i")
    streams = [name for name, file in files.items() if is_stream(file)]
    if len(streams) > 1:
        raise OptionError(f"-i gives the standard input to {streams[0]} and to {streams[1]}, but it can be read only once")
    found = {}
    for name, file in files.items():
        order = problem.order(name)
        number = None if order else _number(file)
        with working(f"reading {file}"):
            tensor = asarray(number) if number is not None else _as_order(read_named(file), order)
            if tensor.ndim != order:
                raise ShapeError(f"{file} holds a tensor of shape {tensor.shape}, but {name} has {plural(order, 'mode')} in the statement")
            found[name] = asarray(tensor, format=problem.format(name), dtype=dtype_of.get(name), name=name)
    return found


def _number(text: str) -> int | float | complex | None:
    """The number that a text spells, if it does."""
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _as_order(tensor: Tensor, order: int) -> Tensor:
    """A vector or scalar where a file, as .mtx files do, holds it as a matrix with one column."""
    while tensor.ndim > order and tensor.shape[-1] == 1:
        tensor = asarray(tensor[..., 0])
    return tensor


def all_operands(
    problem: Wanted, given: Mapping[str, Tensor], sizes: Mapping[str, int], dtype_of: Mapping[str, DType], options: argparse.Namespace
) -> dict[str, Tensor]:
    """The operands of a program in order: those that are given, and random ones for the rest."""
    found = {}
    for name in problem.operands:
        if name in given:
            found[name] = given[name]
            continue
        with working(f"making {name}"):
            found[name] = problem.random(name, sizes, options.density, options.seed, dtype_of.get(name, FLOAT64))
    return found


def statement_kernel(problem: Wanted, sizes: Mapping[str, int], options: argparse.Namespace) -> Kernel:
    """The statement for operands as they are stored, under the schedule that was asked for."""
    ring = None if options.semiring is None else semiring(options.semiring)
    free = tuple((var, sizes[var]) for var in sorted(problem.free_extents))
    about = problem.formats.get(problem.result), None, ring, free, options.target, known_workspace(options.workspace), options.schedule
    return kernel_for(problem.text, tuple(problem.formats), *about)
