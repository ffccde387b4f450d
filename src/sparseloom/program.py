"""What users call: ``program``, ``evaluate`` and ``einsum``. Each makes a ``Kernel``; the last two also run it."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sparseloom.core.algebra import Semiring, semiring
from sparseloom.core.dtypes import DType, value_dtype
from sparseloom.core.errors import FormatError, NotationError, ScheduleError
from sparseloom.formats.format import Format
from sparseloom.formats.named import dense, name_of
from sparseloom.formats.text import as_format
from sparseloom.iteration.rows import RowKind, known_workspace
from sparseloom.kernel import Kernel, name_is_an_option
from sparseloom.notation.einsum import broadcast, converted, parse_einsum
from sparseloom.notation.nodes import Assign
from sparseloom.notation.terms import tensors_of
from sparseloom.notation.text import parse
from sparseloom.plan.problem import known_sizes
from sparseloom.targets.registry import DEFAULT, find_target
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor


def program(
    text: str,
    formats: Mapping[str, Format | str] | None = None,
    schedule: str | None = None,
    *,
    dtype: Any = None,
    semiring: Semiring | str | None = None,
    sizes: Mapping[str, int] | None = None,
    target: str = DEFAULT,
    deterministic: bool = False,
    workspace: str | None = None,
) -> Kernel:
    """Compile a statement for given formats. Tensors without one are dense, the result too.

    ``schedule`` says how the loops run, step by step: ``split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces)``. It never changes the
    result. ``deterministic`` refuses strategies that add in no fixed order. ``workspace`` says in what the rows of a sparse result are
    built where their entries come in no order: ``dense``, ``hash`` or ``sort``; left out, it follows from their length.

    >>> import sparseloom as sl
    >>> k = sl.program("C(i,j) = A(i,j) + B(i,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
    >>> print(k.show("concrete"))
    forall i
      forall j
        C(i,j) = A(i,j) + B(i,j)
    """
    if not isinstance(schedule, str | None):
        raise ScheduleError(f"[S001] cannot read the schedule: it must be text, not {type(schedule).__name__}\n  help: pass its .text")
    given = dict(formats or {})
    statement = parse(text, tuple(given)).assign
    orders = {t.name: t.order for t in tensors_of(statement)}
    for name in given:
        if name not in orders:
            raise NotationError(f"formats names {name!r}, but {text} has {', '.join(orders)}")
    resolved = {name: as_format(form, orders[name]) for name, form in given.items()}
    result = statement.lhs.tensor
    form = resolved.pop(result.name, dense(result.order))
    for name, found in (*resolved.items(), (result.name, form)):
        if found.order != orders[name]:
            raise FormatError(f"{name} has {orders[name]} modes, but {name_of(found)} stores {found.order}")
    kernel = Kernel(statement, text, resolved, form, _dtype(dtype), _semiring(semiring), sizes, target, schedule, workspace)
    if schedule:
        kernel.preview().check_schedule(deterministic)
    return kernel


def evaluate(
    text: str,
    /,
    *operands: Any,
    format: Format | str | None = None,
    dtype: Any = None,
    semiring: Semiring | str | None = None,
    sizes: Mapping[str, int] | None = None,
    target: str = DEFAULT,
    out: Any = None,
    workspace: str | None = None,
    **named: Any,
) -> Tensor:
    """Compute a statement on operands as they are stored. ``workspace`` is as in ``program``.

    >>> import numpy as np, sparseloom as sl
    >>> sl.evaluate("y(i) = A(i,j) * x(j)", A=np.eye(2), x=np.array([3.0, 4.0])).to_numpy()
    array([3., 4.])

    Operands also go by position, in order of appearance, or in a dict, which takes every name:

    >>> sl.evaluate("y(i) = out(i) + dtype(i)", {"out": np.ones(2), "dtype": np.ones(2)}).to_numpy()
    array([2., 2.])
    """
    in_dict = operands[0] if operands and isinstance(operands[0], dict) else {}
    names = tuple(sorted({*named, *(name for name in in_dict if isinstance(name, str))}))
    given = {"format": format, "dtype": dtype, "semiring": semiring, "sizes": sizes, "workspace": workspace}
    options = [name for name, value in given.items() if value is not None]
    if not isinstance(target, str) or target != DEFAULT:
        options.append("target")
    if options and not (operands and not in_dict):
        _check_options(_statement(text), names, tuple(options))
    wanted = None if format is None else (format if isinstance(format, Format) else str(format))
    extents = tuple(sorted(known_sizes(sizes).items()))
    arguments = wanted, _dtype(dtype), _semiring(semiring), extents, find_target(target).name, known_workspace(workspace)
    kernel = _kernel_for(_statement(text), names, *arguments)
    return kernel(*operands, out=out, **named)


@lru_cache(maxsize=512)
def _check_options(text: str, names: tuple[str, ...], options: tuple[str, ...]) -> None:
    """Refuse an option that was meant as the operand of that name."""
    parsed = parse(text, names)
    needed = (*parsed.operands, parsed.result) if parsed.assign.op else parsed.operands
    for name in options:
        if name in needed and name not in names:
            raise name_is_an_option(name, text)


@lru_cache(maxsize=512)
def _kernel_for(
    text: str,
    names: tuple[str, ...],
    format: Format | str | None,
    dtype: DType | None,
    ring: Semiring | None,
    sizes: tuple[tuple[str, int], ...],
    target: str,
    workspace: RowKind | None,
) -> Kernel:
    statement = parse(text, names).assign
    form = None if format is None else as_format(format, statement.lhs.tensor.order)
    return Kernel(statement, text, None, form, dtype, ring, dict(sizes), target, None, workspace and workspace.value)


def _statement(text: Any) -> str:
    """A statement, which must be text: it is looked up before it is read."""
    return text if isinstance(text, str) else parse(text).text


def einsum(
    subscripts: Any,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    format: Format | str | None = None,
    target: str = DEFAULT,
) -> Tensor:
    """Einstein summation as NumPy spells it, on sparse and dense operands.

    >>> import numpy as np, sparseloom as sl
    >>> float(sl.einsum("i,i->", np.arange(3.0), np.ones(3)).to_numpy())
    3.0
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists(subscripts, operands)
    tensors = [asarray(operand) for operand in operands]
    statement = parse_einsum(subscripts, [t.ndim for t in tensors])
    statement, squeezed = broadcast(statement, [t.shape for t in tensors])
    for k, modes in enumerate(squeezed):
        if modes:
            tensors[k] = tensors[k][tuple(0 if mode in modes else slice(None) for mode in range(tensors[k].ndim))]
    wanted = _dtype(dtype)
    statement = converted(statement, [t.dtype for t in tensors], wanted)
    form = None if format is None else as_format(format, statement.lhs.tensor.order)
    kernel = _einsum_kernel(statement, subscripts, form, wanted, target)
    return kernel(out=out, **{f"op{k}": tensor for k, tensor in enumerate(tensors)})


@lru_cache(maxsize=512)
def _einsum_kernel(statement: Assign, text: str, format: Format | None, dtype: DType | None, target: str) -> Kernel:
    return Kernel(statement, text, None, format, dtype, None, None, target)


def _from_lists(first: Any, rest: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """NumPy's other call form: ``einsum(A, [0, 1], x, [1], [0])``."""
    given = [first, *rest]
    output = None if len(given) % 2 == 0 else given.pop()
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def spell(labels: Sequence[Any]) -> str:
        try:
            numbers = [label if label is Ellipsis else operator.index(label) for label in labels]
            # Negative ones would count from the end, and NumPy takes truth values for no numbers either.
            if any(isinstance(number, bool) or (number is not Ellipsis and number < 0) for number in (*labels, *numbers)):
                raise IndexError
            return "".join("..." if number is Ellipsis else letters[number] for number in numbers)
        except (IndexError, TypeError):
            raise NotationError(f"the labels {labels!r} must be whole numbers from 0 to {len(letters) - 1}, or Ellipsis") from None

    text = ",".join(spell(labels) for labels in given[1::2])
    return (text if output is None else f"{text}->{spell(output)}"), tuple(given[0::2])


def _dtype(wanted: Any) -> DType | None:
    return None if wanted is None else value_dtype(wanted)


def _semiring(wanted: Semiring | str | None) -> Semiring | None:
    return None if wanted is None else semiring(wanted)
