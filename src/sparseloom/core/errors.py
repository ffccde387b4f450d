"""Every error and warning a user can meet, all below ``SparseloomError`` and ``SparseloomWarning``.

A user's mistake is one of these, with a sentence that says what was asked, why not, and what to do.
A broken promise inside the compiler is ``CompilerBug``: it is never the user's fault.
"""

from __future__ import annotations

from typing import Any

from sparseloom.core.signs import printable


class SparseloomError(Exception):
    """The root of all errors Sparseloom raises on purpose.

    >>> try:
    ...     sl.evaluate("y(i) = x(j", x=[1.0])
    ... except sl.SparseloomError as error:
    ...     print(type(error).__name__)
    NotationError
    """

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """The text is made already, so it is copied as it is."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[SparseloomError], args: tuple[object, ...]) -> SparseloomError:
    return kind.__new__(kind, *args)


class NotationError(SparseloomError, ValueError):
    """A statement cannot be read, or asks for something index notation cannot say.

    >>> sl.evaluate("y(i) = x(i", x=[1.0])
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.NotationError: cannot read the statement: ...
    """


class FormatError(SparseloomError, ValueError):
    """A format is malformed, or does not fit its tensor.

    >>> sl.asarray([1.0, 2.0], format="csr")
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.FormatError: ...
    """


class StorageError(SparseloomError, ValueError):
    """Arrays handed in do not hold what their format promises; the text names the array and the place.

    >>> sl.from_arrays("s", (3,), {"pos0": [0, 1], "crd0": [7], "values": [1.0]})
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.StorageError: ...
    """


class ShapeError(SparseloomError, ValueError):
    """Sizes that must agree do not.

    >>> sl.eye(2) @ [1.0, 2.0, 3.0]
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.ShapeError: ...
    """


class ScheduleError(SparseloomError, ValueError):
    """A schedule step was refused.

    >>> sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "split(k, k0, k1, 4)")
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.ScheduleError: ...
    """


class DTypeError(SparseloomError, TypeError):
    """A value type does not fit the operation.

    >>> sl.asarray(["a", "b"])
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.DTypeError: ...
    """


class DeviceError(SparseloomError, RuntimeError):
    """A tensor is on the wrong device, or a device is missing.

    >>> sl.array_api.zeros(3, device="cuda")
    Traceback (most recent call last):
        ...
    sparseloom.core.errors.DeviceError: ...
    """


class ToolchainError(SparseloomError, RuntimeError):
    """No working compiler was found, or it failed.

    >>> issubclass(sl.ToolchainError, RuntimeError)
    True
    """


class CompilerBug(SparseloomError, AssertionError):
    """A promise between two stages was broken. Please report it with the statement and formats.

    >>> issubclass(sl.CompilerBug, sl.SparseloomError)
    True
    """

    def __init__(self, where: object, what: str) -> None:
        super().__init__(f"internal error: {what}\n  at: {where}\nThis is a bug in Sparseloom, not in your program.")


class SparseloomWarning(UserWarning):
    """The root of all warnings Sparseloom gives.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sl.SparseloomWarning)
    """


class ConversionWarning(SparseloomWarning):
    """An operand had to be copied or converted; the text says why.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sl.ConversionWarning)
    """


class RaceWarning(SparseloomWarning):
    """A parallel loop may write one place twice and was told to ignore it.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sl.RaceWarning)
    """
