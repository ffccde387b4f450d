"""The child of the campaign: it is given numbers of programs, and says of each what became of it.

Lists of numbers come in on standard input, one batch a line. Answers go out on a pipe of their own, one JSON list a line: the number that
is in hand before anything is done with it, so that the parent knows what ended this process, and the outcome after it.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import sys
import warnings

from metamorphic.running import run_batch

LONGEST_MESSAGE = 6000


def main(seed: int, compiled: float, variants: int, pipe: int) -> None:
    """Answer until the input ends."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    batches, sys.stdin = sys.stdin, open(os.devnull)  # noqa: SIM115 -- open as long as the process
    with os.fdopen(pipe, "w") as out:

        def say(*words: object) -> None:
            print(json.dumps(words), file=out, flush=True)

        say("ready")
        gc.disable()  # trees of the compiler are searched for cycles in vain; a batch is small
        for line in batches:
            for trial in run_batch(seed, json.loads(line), lambda number: say("at", number), compiled, variants):
                faults = [(kind, text[:LONGEST_MESSAGE]) for kind, text in trial.faults]
                say("done", trial.number, trial.compared, dict(trial.words), faults)
            gc.collect()
            say("ready")
