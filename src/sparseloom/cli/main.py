"""``sparseloom``: compile and run tensor expressions from a shell."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from sparseloom import __version__
from sparseloom.cli import bisect, cache, compile, convert, explore, formats, info, run
from sparseloom.cli.terminal import complain, warnings_as_notes
from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.core.signs import spell_signs

USER_MISTAKE, OUR_MISTAKE = 2, 1
_EXAMPLES = """\
examples:
  sparseloom compile "y(i) = A(i,j) * x(j)" -f A:csr          the C of a sparse matrix-vector product
  sparseloom run "y(i) = A(i,j) * x(j)" -i A=a.mtx -o y=y.mtx  compute it; x is random
  sparseloom run "y(i) = A(i,j) * x(j)" -f A:csr --time        time it on random data
  sparseloom explore "y(i) = A(i,j) * x(j)" -f A:csr           see and change its schedule in a browser

'sparseloom COMMAND --help' says more about each command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 for a mistake of the user, 130 for Ctrl-C."""
    return carry_out(_parser(), arguments)


def carry_out(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Do what the arguments ask of a parser, report what goes wrong in one message, and return the exit status."""
    spell_signs(sys.stdout, sys.stderr)
    options = parser.parse_args(arguments)
    if not hasattr(options, "execute"):
        parser.print_help(sys.stderr)
        return USER_MISTAKE
    try:
        with warnings_as_notes():
            status: int = options.execute(options)
            sys.stdout.flush()
            return status
    except CompilerBug as bug:
        complain(str(bug))
        return OUR_MISTAKE
    except SparseloomError as mistake:
        complain(str(mistake))
        return USER_MISTAKE
    except BrokenPipeError:
        return _reader_has_gone()
    except OSError as mistake:
        complain(f"cannot open {mistake.filename}: {mistake.strerror}" if mistake.filename else str(mistake))
        return USER_MISTAKE
    except MemoryError as mistake:
        complain(f"there is not enough memory for this: {str(mistake) or 'it was refused by the system'}\n  help: choose a sparse format")
        return USER_MISTAKE
    except KeyboardInterrupt:
        complain("stopped")
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sparseloom",
        description="A compiler for sparse and dense tensor algebra.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sparseloom {__version__}")
    subcommands = parser.add_subparsers(metavar="COMMAND")
    for command in (compile, run, explore, convert, formats, bisect, cache, info):
        command.add_to(subcommands)
    return parser


def _reader_has_gone() -> int:
    """End quietly when the other end of a pipe was closed, as by ``head``; what is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
