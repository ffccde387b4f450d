"""``sparseloom explore``: a page on which a schedule can be seen, changed and measured."""

from __future__ import annotations

import argparse
import signal
import threading
from typing import TYPE_CHECKING, Any

from sparseloom.calls.evaluation import program
from sparseloom.cli.arguments import OptionError, Subcommands, add_formats, add_schedule, add_semiring, add_subcommand
from sparseloom.cli.inputs import add_inputs, asked_extents, given_operands, read_problem
from sparseloom.cli.terminal import say
from sparseloom.core.settings import read_size
from sparseloom.formats.named import name_of
from sparseloom.targets.registry import DEFAULT, TARGETS
from sparseloom.tensor.tensor import Tensor

if TYPE_CHECKING:
    from sparseloom.explorer.serving import Explorer

HIGHEST_PORT = 65535
ABOUT = "Open a page on which a schedule can be seen, changed and measured. It is served to this machine alone, until Ctrl-C."
EXAMPLES = """
sparseloom explore
sparseloom explore "y(i) = A(i,j) * x(j)" -f A:csr -s "split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces)"
sparseloom explore "y(i) = A(i,j) * x(j)" -i A=a.mtx --port 8080 --no-browser
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "explore", execute, ABOUT, EXAMPLES)
    parser.add_argument("statement", nargs="?", help='index notation, such as "y(i) = A(i,j) * x(j)"; left out, one can be chosen there')
    add_formats(parser)
    add_schedule(parser)
    add_semiring(parser)
    add_inputs(parser)
    targets = tuple(name for name, target in TARGETS.items() if target.model is target)
    parser.add_argument("--target", choices=targets, default=DEFAULT, help="what code is made for")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="where to serve the page (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="only say the address, and open no browser")
    parser.add_argument("--memory", default="6G", metavar="SIZE", help="how much computing may take beside the operands (default: 6G)")
    parser.add_argument("--log", action="store_true", help="tell of every request, and what the processes that compute say")


def execute(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    if not 0 <= options.port <= HIGHEST_PORT:
        help = "leave it away, and any free port is taken"
        raise OptionError(f"--port is a number from 0 to {HIGHEST_PORT}, not {options.port}\n  help: {help}")
    state, operands = _opening(options)
    explorer = _served(options, state, operands)
    try:
        say(f"the explorer is at {explorer.url} (Ctrl-C ends it)")
        if not options.no_browser:
            explorer.open_browser()
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    finally:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends as it is, and quickly
        explorer.close()
        signal.signal(signal.SIGINT, before)
    return 0


def _served(options: argparse.Namespace, state: dict[str, Any] | None, operands: dict[str, Tensor]) -> Explorer:
    from sparseloom.explorer.limits import Limits
    from sparseloom.explorer.serving import Explorer

    try:
        return Explorer(state, operands, options.port, limits=Limits(read_size(options.memory, "--memory")), log=options.log)
    except OSError as problem:
        help = "choose another --port, or leave it away"
        raise OptionError(f"cannot serve on port {options.port}: {problem.strerror}\n  help: {help}") from None


def _opening(options: argparse.Namespace) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """The state that the page shows first, and the operands that come from files."""
    if options.statement is None:
        if options.format or options.schedule or options.input or options.extent or options.semiring:
            raise OptionError("there is no statement for -f, -s, -i, -d or --semiring\n  help: write it in front of them")
        return None, {}
    from sparseloom.explorer.opening import program_state
    from sparseloom.explorer.state import USUAL

    problem = read_problem(options)
    if not 0 <= options.density <= 1:
        raise OptionError(f"--density is a number from 0 to 1, not {options.density}")
    sizes, operands = asked_extents(problem, options), given_operands(problem, options.input, {})
    problem.extents(operands, sizes, "-d says")
    formats = {**{name: name_of(tensor.format) for name, tensor in operands.items() if not tensor.format.is_dense}, **problem.formats}
    state = program_state(problem.script, formats, options.schedule, options.target, semiring=options.semiring or USUAL)
    # Without its steps: the page shows which of them are refused, and why.
    program(state["statement"], state["formats"], "", target=options.target, semiring=state["semiring"])
    return {**state, "sizes": sizes, "density": options.density, "seed": options.seed}, operands
