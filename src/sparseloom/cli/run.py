"""``sparseloom run``: compute a statement on tensors from files, and on random ones where no file is given."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from statistics import median

import numpy as np

from sparseloom.calls.supplied import Wanted
from sparseloom.cli.arguments import OptionError, Subcommands, add_statement, add_subcommand, dtypes
from sparseloom.cli.inputs import add_inputs, all_operands, asked_extents, given_operands, read_problem, statement_kernel
from sparseloom.cli.streams import require_output, write_named, written_suffix
from sparseloom.cli.terminal import facts, plural, say, seconds, working
from sparseloom.formats.pack import unpack
from sparseloom.programs.cuda.device import device
from sparseloom.targets.registry import DEFAULT, TARGETS
from sparseloom.targets.target import Calling
from sparseloom.tensor.bound_kernel import BoundKernel
from sparseloom.tensor.creation import asarray, from_coo
from sparseloom.tensor.tensor import Tensor

LEAST_RUNS, MOST_RUNS, LONGEST_TIMING = 3, 1000, 1.0

ABOUT = "Compute a statement. Tensors without a file are random; operands keep the format of their file unless -f says otherwise."
EXAMPLES = """
sparseloom run "y(i) = A(i,j) * x(j)" -i A=a.mtx -i x=x.mtx -o y=y.mtx
sparseloom run "y(i) = A(i,j) * x(j)" -f A:csr -d i:100000 -d j:100000 --density 1e-4 --time
sparseloom run "C(i,j) = alpha * A(i,j) + B(i,j)" -i A=a.mtx -i B=b.mtx -i alpha=0.5 -o C=c.npz
sparseloom run "n = A(i,j)" -i A=a.mtx
sparseloom run "$(cat plan.txt)" -i A=a.mtx -o y=y.mtx      several statements, as kernel.plan prints them
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "run", execute, ABOUT, EXAMPLES)
    add_statement(parser)
    add_inputs(parser)
    parser.add_argument("-o", "--output", metavar="[NAME=]FILE", help="where the result goes (- is the standard output), if not a summary")
    told = "what runs: compiled C, CUDA on a GPU, to which operands are copied, or the slow interpreter"
    parser.add_argument("--target", choices=tuple(TARGETS), default=DEFAULT, help=told)
    parser.add_argument("--time", action="store_true", help="run several times and tell the median")
    parser.add_argument("--repeat", type=int, metavar="N", help="how often to run with --time (default: for about a second)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary of operands and result")


def execute(options: argparse.Namespace) -> int:
    """Compute, then write or print the result."""
    problem = read_problem(options)
    on_device = TARGETS[options.target].calling is Calling.LAUNCHED
    if on_device:
        device()  # says what is missing where there is none, before anything is read or made
    if options.repeat is not None and options.repeat < 1:
        raise OptionError(f"--repeat is how often to run, at least once, not {options.repeat}")
    target_file = _output(options.output, problem)
    dtype_of = dtypes(options.dtype, problem.operands)
    given = given_operands(problem, options.input, dtype_of)
    sizes = problem.extents(given, asked_extents(problem, options), "-d says")
    operands = all_operands(problem, given, sizes, dtype_of, options)
    if not options.quiet:
        _describe(given, operands)
    if on_device:
        with working("copying operands to the device"):
            operands = {name: tensor.to_device() for name, tensor in operands.items()}
    kernel = statement_kernel(problem, sizes, options)
    with working("compiling and running"):
        began = time.perf_counter()
        result = kernel(**operands)
        first = time.perf_counter() - began
    if not options.quiet:
        say(f"{problem.result}  {facts(result)}; the first call took {seconds(first)}, compiling included")
    if options.time:
        _tell_times(problem, kernel.bind(**operands), options.repeat, device().finish if on_device else _nothing_to_wait_for)
    result = result.to_host()
    if target_file is None:
        print(result)
    else:
        with working(f"writing {target_file}"):
            write_named(target_file, _as_matrix(result) if ".mtx" in written_suffix(target_file, max(result.ndim, 2)) else result)
        if not options.quiet:
            say(f"wrote {target_file}")
    return 0


def _output(text: str | None, problem: Wanted) -> str | None:
    """The file of ``-o y=y.mtx``, or of ``-o y.mtx``; one that could not be written is refused before anything is computed."""
    result = problem.result
    name, mark, file = (text or "").partition("=")
    if mark and name.strip() != result:
        raise OptionError(f"-o names {name.strip()}, but the result is {result}\n  help: write -o {result}={file}")
    target = file if mark else text
    if target is not None:
        require_output(target)
        if problem.order(result) > 2 and ".mtx" in written_suffix(target, 3):
            raise OptionError(f"{target} cannot hold {result}, which has {problem.order(result)} modes\n  help: write .tns or .npz")
    return target


def _as_matrix(tensor: Tensor) -> Tensor:
    """A vector or scalar as a matrix with one column, which is how .mtx files hold them."""
    if tensor.ndim >= 2:
        return tensor
    shape = (*tensor.shape, 1, 1)[:2]
    if tensor.format.is_dense:
        return asarray(tensor.to_numpy().reshape(shape))
    coordinates, values = unpack(tensor.storage)
    return from_coo(np.vstack([coordinates, np.zeros_like(coordinates)]), values, shape, fill=tensor.fill)


def _describe(given: Mapping[str, Tensor], operands: Mapping[str, Tensor]) -> None:
    width = max(map(len, operands), default=0)
    for name, tensor in operands.items():
        say(f"{name:{width}}  {facts(tensor)}{'' if name in given else ', random'}")


def _nothing_to_wait_for() -> None:
    """A kernel in C has ended when its call returns."""


def _tell_times(problem: Wanted, bound: BoundKernel, repeat: int | None, finish: Callable[[], object]) -> None:
    """Run the kernel again and again on the same arrays; ``finish`` waits until it has ended."""
    times: list[float] = []
    with working("timing"):
        began = time.perf_counter()
        while len(times) < (repeat or MOST_RUNS):
            before = time.perf_counter()
            bound.start()
            finish()
            after = time.perf_counter()
            times.append(after - before)
            if repeat is None and len(times) >= LEAST_RUNS and after - began > LONGEST_TIMING:
                break
    say(f"{problem.result}  median {seconds(median(times))} of {plural(len(times), 'run')}, fastest {seconds(min(times))}")
