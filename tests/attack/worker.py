"""The child of the hostile campaign: it is told one trial at a time, and says what became of it.

Numbers of trials come in on standard input; the answers go out on a pipe of their own, one JSON list each, since a trial may print.
What kills this process or hangs it is seen by the parent, which knows the trial that it was told last.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import sys
import traceback
import warnings
import zlib
from types import ModuleType

import numpy as np

from sparseloom import CompilerBug, SparseloomError

READY = "ready"
# A trial may ask for terabytes. It gets an error as soon as it asks, not a machine without memory.
ADDRESS_SPACE = 16 << 30
LONGEST_MESSAGE = 2000


def generator(seed: int, part: str, number: int) -> np.random.Generator:
    """The random numbers of one trial: from the seed of the campaign, the part and the trial's number alone."""
    return np.random.default_rng([seed, zlib.crc32(part.encode()), number])


def load(part: str) -> ModuleType:
    """The module of one part."""
    return importlib.import_module(f"attack.{part}")


def answer(module: ModuleType, seed: int, part: str, number: int) -> tuple[str, str]:
    """What became of one trial: the kind ("fine", "refused", "wrong" or "exception"), and the trial's word or the message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "fine", str(module.trial(generator(seed, part, number)))
    except AssertionError:
        return "wrong", traceback.format_exc(limit=-3)
    except CompilerBug:
        return "exception", traceback.format_exc(limit=-6)
    except SparseloomError:
        return "refused", "refused"
    except BaseException:  # noqa: BLE001 -- whatever else leaves a trial is what the campaign is looking for
        return "exception", traceback.format_exc(limit=-6)


def main(part: str, seed: int, pipe: int) -> None:
    """Answer until the input ends."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))
    numbers, sys.stdin = sys.stdin, open(os.devnull)  # noqa: SIM115 -- open as long as the process
    with os.fdopen(pipe, "w") as out:
        module = load(part)
        print(json.dumps([READY, ""]), file=out, flush=True)
        for line in numbers:
            kind, text = answer(module, seed, part, int(line))
            print(json.dumps([kind, text[-LONGEST_MESSAGE:]]), file=out, flush=True)
