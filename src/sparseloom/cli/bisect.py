"""``sparseloom bisect``: find the pass of the compiler that changes a result."""

from __future__ import annotations

import argparse

from sparseloom.cli.arguments import OptionError, Subcommands, add_statement, add_subcommand, dtypes
from sparseloom.cli.inputs import add_inputs, all_operands, asked_extents, given_operands, read_problem, statement_kernel
from sparseloom.programs.bisection import Verdict, bisect
from sparseloom.programs.execution import Specialization
from sparseloom.targets.registry import DEFAULT, TARGETS

SMALL = 6  # how far variables run where nothing says it: the oracle is dense
WRONG = 1
ABOUT = "Run the loops after every pass of the compiler and name the first pass after which the result is wrong."
EXAMPLES = """
sparseloom bisect "y(i) = A(i,j) * x(j)" -f A:csr -s "split(i,i0,i1,4) parallelize(i0,CPUThread,NoRaces)"
sparseloom bisect "C(i,k) = A(i,j) * B(j,k)" -f A:csr -d i:9 -d j:7 -d k:33 --density 0.4 --seed 3
sparseloom bisect "y(i) = A(i,j) * x(j)" -i A=a.mtx --target cuda
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "bisect", execute, ABOUT, EXAMPLES)
    add_statement(parser)
    add_inputs(parser)
    parser.add_argument("--target", choices=tuple(TARGETS), default=DEFAULT, help="whose passes are run; the interpreter runs the loops")


def execute(options: argparse.Namespace) -> int:
    """Print a line for each pass, and what to look at if one of them is wrong."""
    problem = read_problem(options)
    if len(problem.script.steps) > 1:
        help = "give them to it one by one, each with the results of those before it as -i NAME=FILE"
        raise OptionError(f"bisect takes one statement, not {len(problem.script.steps)}\n  help: {help}")
    dtype_of = dtypes(options.dtype, problem.operands)
    given = given_operands(problem, options.input, dtype_of)
    asked = dict.fromkeys(problem.variables, SMALL) if not given else {}
    sizes = problem.extents(given, asked | asked_extents(problem, options), "-d says")
    operands = all_operands(problem, given, sizes, dtype_of, options)
    storages = {name: tensor.storage for name, tensor in operands.items()}
    made = statement_kernel(problem, sizes, options).specialized(storages)
    if not isinstance(made, Specialization):
        raise OptionError("the statement was cut into several\n  help: bisect the statements that 'sparseloom compile' shows one by one")
    last: Verdict | None = None
    for last in bisect(made, storages):
        print(last)
    if last is None or last.fault is None:
        print("no pass changes the result")
        return 0
    print(f"{last.name} is the first after which the result is wrong; --show passes of 'sparseloom compile' prints what it changed")
    return WRONG
