"""``sparseloom convert``: from one file format, storage format or dtype to another."""

from __future__ import annotations

import argparse

from sparseloom.cli.arguments import Subcommands, add_subcommand
from sparseloom.cli.streams import read_named, require_output, write_named
from sparseloom.cli.terminal import facts, say, working
from sparseloom.tensor.creation import asarray

ABOUT = (
    "Read a tensor and write it again. The names of the files say their kinds: .mtx, .tns, .npz, .npy, .mat, .h5, also .mtx.gz, .tns.gz "
    "and .bsp.npz. A dash is the standard input or output."
)
EXAMPLES = """
sparseloom convert a.mtx a.npz
sparseloom convert a.mtx.gz a.npz -f csc -t float32
sparseloom convert tensor.tns tensor.npz -f sss:2,0,1
zcat a.mtx.gz | sparseloom convert - npz:- > a.npz
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "convert", execute, ABOUT, EXAMPLES)
    parser.add_argument("source", metavar="FROM", help="the file to read, or - for the standard input")
    parser.add_argument("target", metavar="TO", help="the file to write, whose old contents go; - or npz:- for the standard output")
    parser.add_argument("-f", "--format", help="the storage format to convert to; .npz files keep it")
    parser.add_argument("-t", "--dtype", help="the dtype to convert to")


def execute(options: argparse.Namespace) -> int:
    """Read, convert, write."""
    require_output(options.target)
    with working(f"converting {options.source}"):
        tensor = asarray(read_named(options.source), format=options.format, dtype=options.dtype)
        write_named(options.target, tensor)
    say(f"wrote {options.target}: {facts(tensor)}")
    return 0
