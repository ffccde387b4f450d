"""Every error and warning a user can meet, all below ``SparseloomError`` and ``SparseloomWarning``.

A user's mistake is one of these, with a sentence that says what was asked, why not, and what to do.
A broken promise inside the compiler is ``CompilerBug``: it is never the user's fault.
"""

from __future__ import annotations


class SparseloomError(Exception):
    """The root of all errors Sparseloom raises on purpose."""


class NotationError(SparseloomError, ValueError):
    """A statement cannot be read, or asks for something index notation cannot say."""


class FormatError(SparseloomError, ValueError):
    """A format is malformed, or does not fit its tensor."""


class StorageError(SparseloomError, ValueError):
    """Arrays handed in do not hold what their format promises; the text names the array and the place."""


class ShapeError(SparseloomError, ValueError):
    """Sizes that must agree do not."""


class ScheduleError(SparseloomError, ValueError):
    """A schedule step was refused."""


class DTypeError(SparseloomError, TypeError):
    """A value type does not fit the operation."""


class DeviceError(SparseloomError, RuntimeError):
    """A tensor is on the wrong device, or a device is missing."""


class ToolchainError(SparseloomError, RuntimeError):
    """No working compiler was found, or it failed."""


class CompilerBug(SparseloomError, AssertionError):
    """A promise between two stages was broken. Please report it with the statement and formats."""

    def __init__(self, where: object, what: str) -> None:
        super().__init__(f"internal error: {what}\n  at: {where}\nThis is a bug in Sparseloom, not in your program.")


class SparseloomWarning(UserWarning):
    """The root of all warnings Sparseloom gives."""


class ConversionWarning(SparseloomWarning):
    """An operand had to be copied or converted; the text says why."""


class RaceWarning(SparseloomWarning):
    """A parallel loop may write one place twice and was told to ignore it."""
