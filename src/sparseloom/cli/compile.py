"""``sparseloom compile``: show what a statement becomes, stage by stage. Nothing is run, so no C compiler is needed."""

from __future__ import annotations

import argparse
from pathlib import Path

from sparseloom.calls.evaluation import program
from sparseloom.cli.arguments import Subcommands, add_statement, add_subcommand, dtypes, named_values
from sparseloom.cli.terminal import say
from sparseloom.compiler import STAGES
from sparseloom.io.source import replacing
from sparseloom.programs.chain import Chain
from sparseloom.programs.execution import Specialization

ABOUT = "Compile a statement and print the C. Operands without a format are dense, and so is the result."
EXAMPLES = """
sparseloom compile "y(i) = A(i,j) * x(j)" -f A:csr
sparseloom compile "y(i) = (A(i,j) + B(i,j)) * x(j)" -f A:csr -f B:csr --show concrete --show loops
sparseloom compile "C(i,j) = A(i,j) * B(i,j)" -f A:csr -f B:csr -f C:csr --explain
sparseloom compile "d(i) = A(i,j) * d0(j)" -f A:csc --semiring min_plus -t float32 -o relax.c
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "compile", execute, ABOUT, EXAMPLES)
    add_statement(parser)
    parser.add_argument("--show", action="append", default=[], choices=STAGES, help="a stage to print (default: c); may be repeated")
    parser.add_argument("--explain", action="store_true", help="say who drives each loop, what is converted, and where the result goes")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to a file instead of the terminal")


def execute(options: argparse.Namespace) -> int:
    """Print or write the stages that were asked for."""
    kernel = program(
        options.statement,
        formats=named_values(options.format, ":", "-f", "A:csr"),
        schedule=options.schedule,
        semiring=options.semiring,
        workspace=options.workspace,
    )
    text = _text(kernel.preview(dtypes(options.dtype, kernel.operand_names)), options)
    if options.output is None:
        print(text)
    else:
        with replacing(options.output) as file:
            file.write(f"{text}\n".encode())
        say(f"wrote {options.output}")
    return 0


def _text(made: Specialization | Chain, options: argparse.Namespace) -> str:
    """The stages, with a heading each when there are several."""
    wanted = options.show or ([] if options.explain else ["c"])
    parts = {stage: made.show(stage) for stage in wanted}
    if options.explain:
        parts["explain"] = made.explain()
    if len(parts) == 1:
        return "".join(parts.values()).rstrip("\n")
    return "\n\n".join(f"== {name} ==\n{text.strip()}" for name, text in parts.items())
