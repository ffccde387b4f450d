"""What users call: ``program``, ``evaluate``, ``einsum`` and ``plan``. Each makes a ``Kernel``; ``evaluate`` and ``einsum`` also run it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.calls.kernel import Kernel
from sparseloom.core.algebra import Semiring, semiring
from sparseloom.core.dtypes import DType, promoted, value_dtype
from sparseloom.core.errors import FormatError, NotationError, ScheduleError, ShapeError
from sparseloom.formats.format import Format
from sparseloom.formats.named import dense, name_of
from sparseloom.formats.text import as_format
from sparseloom.interop.device import is_on_device
from sparseloom.iteration.rows import RowKind, known_workspace
from sparseloom.notation.einsum import RESULT, broadcast, converted, parse_einsum
from sparseloom.notation.nodes import Assign
from sparseloom.notation.script import Script, read_script
from sparseloom.plan.contraction import Path, Step
from sparseloom.plan.problem import known_sizes
from sparseloom.programs.dispatch import doors
from sparseloom.programs.passing import holds_operands, name_is_an_option
from sparseloom.programs.replay import PlanText
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.registry import DEFAULT, find_target
from sparseloom.targets.target import Calling
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor
from sparseloom.toolchain import teams

ON_DEVICE = "cuda"


def program(
    text: str,
    formats: Mapping[str, Format | str] | None = None,
    schedule: str | Schedule | None = None,
    *,
    dtype: Any = None,
    semiring: Semiring | str | None = None,
    sizes: Mapping[str, int] | None = None,
    target: str = DEFAULT,
    deterministic: bool = False,
    workspace: str | None = None,
    optimize: bool = True,
    threads: int | None = None,
) -> Kernel:
    """Compile a statement, or several, for given formats. Tensors without one are dense, the result too.

    ``schedule`` says how the loops run: ``split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces)``, or a ``Schedule``. It never changes the
    result. ``deterministic`` refuses strategies that add in no fixed order, and chooses none on a GPU. ``workspace`` says in what rows of
    a sparse result are built whose entries come in no order: ``dense``, ``hash`` or ``sort``; left out, it follows from their length.

    Without a schedule it is chosen, and a product of several tensors may be cut into statements. ``optimize=False`` leaves the
    loops as they are, as ``schedule=""`` does. ``threads`` is how many the kernel runs on, at most; left out, as ``set_threads`` says.

    >>> import sparseloom as sl
    >>> print(sl.program("C(i,j) = A(i,j) + B(i,j)", formats={"A": "csr", "B": "csr", "C": "csr"}).show("concrete"))
    forall i
      forall j
        C(i,j) = A(i,j) + B(i,j)

    Several statements stand on lines of their own, each with its schedule below it, if it has one. The last makes the result:

    >>> k = sl.program('''
    ...     A: csr
    ...     t(k) = A(k,l) * x(l)
    ...       split(k,k0,k1,64) parallelize(k0,CPUThread,NoRaces)
    ...     y(i) = A(i,k) * t(k)
    ... ''')
    >>> k.operand_names
    ('A', 'x')
    """
    script, resolved = _read(text, formats or {})
    last = script.last
    form = resolved.pop(last.parsed.result, dense(last.assign.lhs.tensor.order))
    chosen = _plain(_schedule(script, schedule.text if isinstance(schedule, Schedule) else schedule), optimize)
    before = _before(script, chosen, {name: resolved.pop(name, None) or dense(order) for name, order in _made(script)})
    options = _dtype(dtype), _semiring(semiring), sizes, target, chosen, workspace, None, before, threads, deterministic
    kernel = Kernel(last.assign, text, resolved, form, *options)
    if chosen or any(step.schedule for step in before):
        kernel.preview().check_schedule(deterministic)
    return kernel


def _read(text: str, formats: Mapping[str, Format | str], names: Sequence[str] = ()) -> tuple[Script, dict[str, Format]]:
    """A program, and the formats that it or the caller declares. ``names`` are known to be tensors."""
    script = read_script(text, (*formats, *names))
    orders = script.orders
    for name in formats:
        if name not in orders:
            raise NotationError(f"formats names {name!r}, but {text} has {', '.join(orders)}")
    for name in script.formats:
        if name not in orders:
            raise NotationError(f"the program gives a format to {name!r}, but has {', '.join(orders)}")
        if name in formats:
            raise NotationError(f"the format of {name} is given twice, in the program and by formats=")
    found = {name: as_format(form, orders[name]) for name, form in {**script.formats, **formats}.items()}
    for name, form in found.items():
        if form.order != orders[name]:
            raise FormatError(f"{name} has {orders[name]} modes, but {name_of(form)} stores {form.order}")
    return script, found


def _made(script: Script) -> list[tuple[str, int]]:
    """The temporaries of a program, with the number of their modes."""
    return [(step.parsed.result, step.assign.lhs.tensor.order) for step in script.steps[:-1]]


def _before(script: Script, schedule: str | None, formats: Mapping[str, Format | None]) -> tuple[Step, ...]:
    """The statements before the last. One without a schedule is planned, unless no statement is."""
    default = "" if schedule == "" and script.last.schedule is None else None
    return tuple(
        Step(step.assign, formats[step.parsed.result], default if step.schedule is None else step.schedule) for step in script.steps[:-1]
    )


def _schedule(script: Script, schedule: str | None) -> str | None:
    """The schedule of the last statement: as the program has it, or as it was given beside it."""
    if not isinstance(schedule, str | None):
        raise ScheduleError(f"[S001] cannot read the schedule: it must be text or a Schedule, not {type(schedule).__name__}")
    if schedule is None:
        return script.last.schedule
    if any(step.schedule is not None for step in script.steps):
        raise ScheduleError("[S001] cannot read the schedule: the program has one already\n  help: leave schedule= away")
    if schedule and len(script.steps) > 1:
        help = "write the steps below the statement that they are for"
        raise ScheduleError(f"[S001] cannot read the schedule: the program has {len(script.steps)} statements\n  help: {help}")
    return schedule


def _plain(schedule: str | None, optimize: Any) -> str | None:
    """A schedule; an empty one where nothing is to be chosen."""
    if not isinstance(optimize, bool):
        raise NotationError(f"optimize is True or False, not {optimize!r}")
    return schedule if optimize or schedule is not None else ""


def evaluate(
    text: str,
    /,
    *operands: Any,
    format: Format | str | None = None,
    dtype: Any = None,
    semiring: Semiring | str | None = None,
    sizes: Mapping[str, int] | None = None,
    target: str | None = None,
    out: Any = None,
    workspace: str | None = None,
    optimize: bool = True,
    threads: int | None = None,
    **named: Any,
) -> Tensor:
    """Compute a statement, or several, on operands as they are stored. ``workspace``, ``optimize`` and ``threads`` are as in ``program``.
    It is computed where the operands are, on a CUDA device if one of them is there, unless ``target`` says otherwise.

    >>> import numpy as np, sparseloom as sl
    >>> sl.evaluate("y(i) = A(i,j) * x(j)", A=np.eye(2), x=np.array([3.0, 4.0])).to_numpy()
    array([3., 4.])

    Operands also go by position, in order of appearance, or in a dict, which takes every name:

    >>> sl.evaluate("y(i) = out(i) + dtype(i)", {"out": np.ones(2), "dtype": np.ones(2)}).to_numpy()
    array([2., 2.])
    """
    on = _target(target, named.values())
    options = format, dtype, semiring, on, workspace, optimize, type(optimize)
    key = (text, *named, *options) if sizes is None and not operands else None
    try:
        kernel = _EVALUATED.get(key)
    except TypeError:  # an option of no kind that there is
        key = kernel = None
    if kernel is None:
        kernel = _evaluating(text, operands, named, format, dtype, semiring, sizes, target, workspace, optimize, threads)
        if key is not None:
            if len(_EVALUATED) >= MOST_EVALUATED:
                _EVALUATED.clear()
            _EVALUATED[key] = kernel
    if threads is None:
        return kernel(*operands, out=out, **named)
    with teams.threads(threads):
        return kernel(*operands, out=out, **named)


MOST_EVALUATED = 512
_EVALUATED: dict[Any, Kernel] = {}


def _evaluating(
    text: str,
    operands: Sequence[Any],
    named: Mapping[str, Any],
    format: Format | str | None,
    dtype: Any,
    semiring: Semiring | str | None,
    sizes: Mapping[str, int] | None,
    target: str | None,
    workspace: str | None,
    optimize: bool,
    threads: int | None = None,
) -> Kernel:
    """The kernel of a statement for operands as they are stored."""
    in_dict = operands[0] if operands and holds_operands(operands[0]) else {}
    names = tuple(sorted({*named, *(name for name in in_dict if isinstance(name, str))}))
    given = {"format": format, "dtype": dtype, "semiring": semiring, "sizes": sizes, "workspace": workspace, "threads": threads}
    options = [name for name, value in given.items() if value is not None]
    if target is not None and (not isinstance(target, str) or target != DEFAULT):
        options.append("target")
    target = _target(target, (*operands, *named.values(), *in_dict.values()))
    if optimize is not True:
        options.append("optimize")
    if options and not (operands and not in_dict):
        _check_options(_statement(text), names, tuple(options))
    wanted = None if format is None else (format if isinstance(format, Format) else str(format))
    extents = tuple(sorted(known_sizes(sizes).items()))
    arguments = wanted, _dtype(dtype), _semiring(semiring), extents, find_target(target).name, known_workspace(workspace)
    return kernel_for(_statement(text), names, *arguments, _plain(None, optimize))


@lru_cache(maxsize=512)
def _check_options(text: str, names: tuple[str, ...], options: tuple[str, ...]) -> None:
    """Refuse an option that was meant as the operand of that name."""
    script = read_script(text, names)
    needed = (*script.operands, script.last.parsed.result) if script.last.assign.op else script.operands
    for name in options:
        if name in needed and name not in names:
            raise name_is_an_option(name, text)


@lru_cache(maxsize=512)
def kernel_for(
    text: str,
    names: tuple[str, ...],
    format: Format | str | None,
    dtype: DType | None,
    ring: Semiring | None,
    sizes: tuple[tuple[str, int], ...],
    target: str,
    workspace: RowKind | None,
    schedule: str | None,
) -> Kernel:
    """The kernel of a program for operands as they are stored; ``names`` are known to be tensors."""
    script, forms = _read(text, {}, names)
    last = script.last
    given = None if format is None else as_format(format, last.assign.lhs.tensor.order)
    chosen = _schedule(script, schedule)
    before = _before(script, chosen, {name: forms.pop(name, None) for name, _ in _made(script)})
    form = forms.pop(last.parsed.result, None) if given is None else given
    operands = {name: forms.get(name) for name in script.operands} if forms else None  # one that is not declared stays as it is stored
    options = dtype, ring, dict(sizes), target, chosen, workspace and workspace.value, None, before
    return Kernel(last.assign, text, operands, form, *options)


def _statement(text: Any) -> str:
    """A statement, which must be text: it is looked up before it is read."""
    return text if isinstance(text, str) else read_script(text).last.parsed.text


def einsum(
    subscripts: Any,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    format: Format | str | None = None,
    target: str | None = None,
    optimize: Any = True,
    threads: int | None = None,
) -> Tensor:
    """Einstein summation as NumPy spells it, on sparse and dense operands, where they are: in main memory, or on a CUDA device.

    >>> import numpy as np, sparseloom as sl
    >>> float(sl.einsum("i,i->", np.arange(3.0), np.ones(3)).to_numpy())
    3.0

    The order in which operands are multiplied is chosen by what they hold. ``optimize=False`` multiplies all of them in one loop nest; a
    path, as ``np.einsum_path`` gives it, asks for an order. NumPy's "greedy" and "optimal" leave the choice to us, as True does.

    >>> A, x = np.ones((2, 2)), np.ones(2)
    >>> sl.einsum("ij,jk,k->i", A, A, x, optimize=["einsum_path", (1, 2), (0, 1)]).to_numpy()
    array([4., 4.])
    """
    if threads is not None:
        with teams.threads(threads):
            return einsum(subscripts, *operands, out=out, dtype=dtype, format=format, target=target, optimize=optimize)
    if isinstance(out, np.ndarray):
        format = "dense" if format is None else format
        common = _dtype_beside(out, operands, dtype)
        if common is not None:
            computed = einsum(subscripts, *operands, dtype=common, format=format, target=target, optimize=optimize)
            if computed.shape != out.shape:
                raise ShapeError(f"out has the shape {out.shape}, but the result has {computed.shape}")
            np.copyto(out, computed.to_numpy())
            return computed
    is_usual = out is None and dtype is None and format is None and target in (None, DEFAULT) and optimize is True
    door = ("einsum", subscripts) if is_usual and operands and isinstance(subscripts, str) else None
    made = None if door is None else doors.through(door, *operands)
    if made is not None:
        return Tensor(made, RESULT)
    kernel, tensors = _einsum(subscripts, operands, dtype, format, target, optimize)
    result = kernel(out=out, **tensors)
    if door is None or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        return result
    storages = {name: tensor.storage for name, tensor in tensors.items()}
    if [storage.shape for storage in storages.values()] == [getattr(value, "shape", None) for value in operands]:
        kernel.teach(doors, door, operands, storages)
    return result


def _dtype_beside(out: NDArray[Any], operands: Sequence[Any], dtype: Any) -> DType | None:
    """The dtype in which NumPy computes into an array that no kernel fills: of another dtype, or in another order; None if one does."""
    arrays = [operand for operand in operands if hasattr(operand, "dtype")]
    if not arrays or not out.flags.writeable or len(arrays) < sum(not isinstance(operand, list) for operand in operands):
        return None
    kind = _dtype(dtype) or promoted([array.dtype for array in arrays])
    common = promoted((kind, out.dtype))
    return common if common == out.dtype and (common != kind or not out.flags.c_contiguous) else None


def _einsum(
    subscripts: Any, operands: Sequence[Any], dtype: Any, format: Format | str | None, target: str | None, optimize: Any
) -> tuple[Kernel, dict[str, Any]]:
    """The kernel of subscripts, and its operands by name: tensors, or what is yet to be copied to where the kernel runs."""
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists(subscripts, operands)
    schedule, path = _contraction_path(optimize)
    target = _target(target, operands)
    tensors = [asarray(operand) for operand in operands]
    statement = parse_einsum(subscripts, [t.ndim for t in tensors])
    statement, squeezed = broadcast(statement, [t.shape for t in tensors])
    for k, modes in enumerate(squeezed):
        if modes:
            tensors[k] = tensors[k][tuple(0 if mode in modes else slice(None) for mode in range(tensors[k].ndim))]
    wanted = _dtype(dtype)
    statement = converted(statement, [t.dtype for t in tensors], wanted)
    form = None if format is None else as_format(format, statement.lhs.tensor.order)
    kernel = _einsum_kernel(statement, subscripts, form, wanted, target, schedule, path)
    # A tensor of the user's is where it is, whatever the kernel needs; one that was made here goes where it must.
    moves = find_target(target).calling is Calling.LAUNCHED
    stays = [not moves or isinstance(operand, Tensor) for operand in operands]
    return kernel, {f"op{k}": tensor if stays[k] else tensor.storage for k, tensor in enumerate(tensors)}


@lru_cache(maxsize=512)
def _einsum_kernel(
    statement: Assign, text: str, format: Format | None, dtype: DType | None, target: str, schedule: str | None, path: Path | None
) -> Kernel:
    return Kernel(statement, text, None, format, dtype, None, None, target, schedule, None, path)


def _contraction_path(optimize: Any) -> tuple[str | None, Path | None]:
    """What NumPy's ``optimize`` asks for: plain loops, our choice, or a path."""
    match optimize:
        case bool():
            return _plain(None, optimize), None
        case "greedy" | "optimal" | ("greedy" | "optimal", int() | float()):
            return None, None
        case ["einsum_path", *steps] if all(isinstance(step, tuple | list) for step in steps):
            try:
                return None, tuple(tuple(operator.index(place) for place in step) for step in steps)
            except TypeError:
                pass
    help = "pass True, False, 'greedy', 'optimal', or a path such as ['einsum_path', (0, 1), (0, 1)]"
    raise NotationError(f"optimize cannot be {optimize!r}\n  help: {help}")


def plan(text: Any, /, *operands: Any, **named: Any) -> PlanText:
    """How ``evaluate`` or ``einsum`` would compute a statement or subscripts on these operands; nothing is computed.

    The arguments are theirs. What it gives is text, which ``program`` reads and runs.

    >>> import numpy as np, scipy.sparse as sp, sparseloom as sl
    >>> A, x = sp.random_array((3000, 3000), density=0.01, format="csr"), np.ones(3000)
    >>> sl.plan("y(i) = A(i,j) * B(j,k) * x(k)", A=A, B=np.ones((3000, 3000)), x=x)
    A: csr
    t1: dense(1)
    t1(j) = B(j,k) * x(k)
      parallelize(k,CPUVector,ParallelReduction)
      divide(j,j0,j1,256)
      parallelize(j0,CPUThread,NoRaces)
    y(i) = A(i,j) * t1(j)
      parallelize(j,CPUVector,ParallelReduction)
      divide(i,i0,i1,64)
      parallelize(i0,CPUThread,NoRaces)
    >>> sl.plan("ij,j->i", A, x)
    op0: csr
    T(i) = op0(i,j) * op1(j)
      parallelize(j,CPUVector,ParallelReduction)
      divide(i,i0,i1,64)
      parallelize(i0,CPUThread,NoRaces)
    """
    named.pop("out", None)
    if isinstance(text, str) and "=" in text:
        options = {key: named.pop(key, default) for key, default in _EVALUATES.items()}
        return _evaluating(text, operands, named, **options).plan_for(*operands, **named)
    options = {key: named.pop(key, default) for key, default in _EINSUMS.items()}
    named.pop("threads", None)
    if named:
        raise NotationError(f"einsum has no argument {next(iter(named))!r}\n  help: operands go by position")
    kernel, tensors = _einsum(text, operands, **options)
    return kernel.plan_for(**tensors)


_EINSUMS: dict[str, Any] = {"dtype": None, "format": None, "target": None, "optimize": True}
_EVALUATES: dict[str, Any] = {**_EINSUMS, "semiring": None, "sizes": None, "workspace": None, "threads": None}


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


def _target(wanted: str | None, operands: Iterable[Any]) -> str:
    """The target that was asked for, else that of where the operands are."""
    if wanted is not None:
        return wanted
    for value in operands:
        kind = type(value)
        if kind is not np.ndarray and (value.device != "cpu" if kind is Tensor else is_on_device(value)):
            return ON_DEVICE
    return DEFAULT


def _dtype(wanted: Any) -> DType | None:
    return None if wanted is None else value_dtype(wanted)


def _semiring(wanted: Semiring | str | None) -> Semiring | None:
    return None if wanted is None else semiring(wanted)
