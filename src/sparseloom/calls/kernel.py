"""The ``Kernel``: a statement that can be called on tensors, and what it remembers of the calls it had."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.core.algebra import Semiring
from sparseloom.core.dtypes import FLOAT64, DType, value_dtype
from sparseloom.core.errors import NotationError, ShapeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import dense
from sparseloom.formats.storage import Storage, has_arrays_of
from sparseloom.interop.intake import enter_aloud
from sparseloom.iteration.rows import known_workspace
from sparseloom.notation.dtyping import promoted_dtype
from sparseloom.notation.nodes import Assign
from sparseloom.notation.terms import close_over, semiring_zero, tensors_of, zero_in
from sparseloom.notation.text import declare
from sparseloom.plan.contraction import Path, Step
from sparseloom.plan.problem import declared, known_sizes, usually_stored
from sparseloom.plan.statistics import NOTHING_KNOWN, Statistics
from sparseloom.programs.binding import Call
from sparseloom.programs.chain import Chain, Setting, preview, specialize, specialize_all
from sparseloom.programs.conversion import convert
from sparseloom.programs.cuda.storages import elsewhere
from sparseloom.programs.dispatch import Doors
from sparseloom.programs.execution import Specialization
from sparseloom.programs.passing import from_dict, name_is_an_option
from sparseloom.programs.replay import PlanText, Shown, plan_text, the_schedule
from sparseloom.programs.tuning import Tuned, tune
from sparseloom.targets.registry import DEFAULT, find_target
from sparseloom.targets.target import Calling
from sparseloom.tensor.bound_kernel import BoundKernel
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.outputs import Assembled, as_output, overlaps, remember_assembled
from sparseloom.tensor.recall import Recall, recall
from sparseloom.tensor.ring_operands import dtype_under, under_semiring
from sparseloom.tensor.tensor import Tensor
from sparseloom.toolchain.teams import known_count, threads

MOST_SPECIALIZED = 64  # how many combinations of formats, dtypes and shapes a kernel remembers


class Kernel(Shown):
    """A statement that can be called on tensors.

    It is compiled when it first meets a combination of formats and dtypes, and remembers every one. Operands go by position in
    order of first appearance, by name, or in a dict. Any array-like serves; one in another format than the kernel was made for is
    converted.

    >>> import numpy as np, sparseloom as sl
    >>> k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    >>> isinstance(k, sl.Kernel), k(np.eye(3), np.arange(3.0)).to_numpy()
    (True, array([0., 1., 2.]))
    """

    def __init__(
        self,
        statement: Assign,
        text: str,
        formats: Mapping[str, Format | None] | None = None,
        format: Format | None = None,
        dtype: DType | None = None,
        ring: Semiring | None = None,
        sizes: Mapping[str, int] | None = None,
        target: str = DEFAULT,
        schedule: str | None = None,
        workspace: str | None = None,
        path: Path | None = None,
        before: Sequence[Step] = (),
        threads: int | None = None,
        deterministic: bool = False,
    ) -> None:
        self._statement = statement
        self._threads = known_count(threads)
        self._path = path
        self._before = tuple(before)
        self._text = text
        self._format = format
        self._dtype = dtype
        self._ring = ring
        self._sizes = known_sizes(sizes)
        self._target = find_target(target).in_order if deterministic else find_target(target)
        self._schedule = schedule
        self._workspace = known_workspace(workspace)
        self.result_name = statement.lhs.tensor.name
        made = {self.result_name, *(step.name for step in self._before)}
        read = [t for one in (*(step.statement for step in self._before), statement) for t in tensors_of(one.rhs)]
        found = [t for t in dict.fromkeys(read) if t.name not in made]
        self.operand_names = tuple(t.name for t in found)
        self._orders = {t.name: t.order for t in (statement.lhs.tensor, *found)}
        self._formats = None if formats is None else {t.name: formats.get(t.name, dense(t.order)) for t in found}
        self._specialized: dict[tuple[Any, ...], Specialization | Chain] = {}
        self._order = self.operand_names if statement.op is None else tuple(dict.fromkeys((*self.operand_names, self.result_name)))
        self._doors = Doors(MOST_SPECIALIZED)
        self._recalled: dict[tuple[Any, ...], Recall] = {}
        self._assembled: dict[int, Assembled] = {}
        self._last: Specialization | Chain | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        workspace = None if self._workspace is None else self._workspace.value
        options = (self._formats, self._format, self._dtype, self._ring, self._sizes, self._target.name, self._schedule, workspace)
        return Kernel, (self._statement, self._text, *options, self._path, self._before, self._threads, self._target.ordered)

    # Calling

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Tensor:
        """Run on these operands. ``out`` is a result to fill again; left out, a new tensor is made.

        Operands go by position, by name, or in one dict by name: an operand that is called ``out`` itself is passed so.
        """
        if self._threads is None:
            return self._call(args, out, named)
        with threads(self._threads):
            return self._call(args, out, named)

    def _call(self, args: tuple[Any, ...], out: Any, named: dict[str, Any]) -> Tensor:
        if args and isinstance(args[0], dict):
            args, named = from_dict(args, named)
        if out is not None or self._target.calling is not Calling.COMPILED:
            return self._call_long(args, out, named)
        given = args if not named else self._in_order(args, named)
        found = self._doors.enter(None, given) if len(given) == len(self._order) else None
        if found is not None and (made := found[0].make(given, found[1])) is not None:
            self._last = found[0].special
            return Tensor(made, self.result_name)
        return self._call_long(args, None, named)

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The operands as they go by position; nothing if some are missing or strange, which the long way says."""
        rest = self._order[len(args) :]
        return (*args, *map(named.__getitem__, rest)) if named.keys() == set(rest) else ()

    def _call_long(self, args: tuple[Any, ...], out: Any, named: dict[str, Any]) -> Tensor:
        """A call whose way is not known, or that fills an output, or runs on a device: the same objects are recalled there."""
        given = (*args, *named.values(), out) if named else (*args, out)
        key = (*map(id, given), *named)
        known = self._recalled.get(key)
        if known is not None and known.fits(given):
            if out is None and known.make is not None:
                return Tensor(known.make(), self.result_name)
            known.fill()
            return out if isinstance(out, Tensor) else asarray(out, copy=False)
        entered = self._entered(args, named, out)
        storages = self._as_read(entered)
        special = self.specialized(storages)
        if out is not None:
            return self._fill(special, storages, out, key, given)
        if self._target.calling is Calling.COMPILED or not special.fills_values:
            made = special.run(storages)
            self._learn(self._doors, None, self._in_order((), self._by_name(args, named, None)), entered, storages)
        else:
            call = special.bind(storages)
            made = call.run()
            self._remember(key, call, made, given, storages)
        return Tensor(made, self.result_name)

    def _learn(
        self, doors: Doors, door: Hashable, given: Sequence[Any], entered: Mapping[str, Storage], storages: Mapping[str, Storage]
    ) -> None:
        """Keep in mind the way of a call on what was ``given``, if the loops read it as it ``entered``."""
        special = self.specialized(storages)
        if all(has_arrays_of(storage, entered[name]) for name, storage in storages.items()):
            doors.learn(door, given, special, {name: k for k, name in enumerate(self._order)}, by_name=True)

    def _fill(
        self, special: Specialization | Chain, storages: Mapping[str, Storage], out: Any, key: tuple[Any, ...], passed: Sequence[Any]
    ) -> Tensor:
        """Compute into an existing tensor."""
        tensor = as_output(out)
        special.check_output(tensor.storage)
        given = tensor.writable() if special.fills_values else tensor.storage
        if not special.fills_values and tensor is not out:
            raise StorageError(
                f"out cannot be {type(out).__name__}: {self.result_name} is sparse, and gets new arrays with every call\n"
                "  help: pass an sl.Tensor, which takes them over, or leave out= away"
            )
        if not special.fills_values or overlaps(given, storages, self.result_name):
            made = special.run(storages)
            if special.fills_values:
                given.values[:] = made.values
            else:
                tensor.replace_storage(made)
            return tensor
        call = special.bind(storages, values=given.values)
        call.start()
        self._remember(key, call, given, passed, storages)
        return tensor

    def _remember(self, key: tuple[Any, ...], call: Call, made: Storage, given: Sequence[Any], storages: Mapping[str, Storage]) -> None:
        """Recall this call when it comes again. Nothing is held that the caller lets go."""
        if self._statement.op is not None or self._ring is not None:
            return  # what it reads is not only what was passed
        found = recall(call, made, given, tuple(storages.values()))
        if found is None:
            return
        if len(self._recalled) >= MOST_SPECIALIZED:
            self._recalled.clear()
        self._recalled[key] = found

    def bind(self, /, *args: Any, out: Any = None, **named: Any) -> BoundKernel:
        """Prepare one call; the bound kernel runs again and again on the same arrays, reading their values anew.

        Index arrays are checked now and trusted from then on: whoever changes them must bind again.

        >>> import numpy as np, sparseloom as sl
        >>> x = np.ones(3)
        >>> run = sl.program("y(i) = 2 * x(i)").bind(x)
        >>> x[:] = 5
        >>> run().to_numpy()
        array([10., 10., 10.])
        """
        # The arrays are read and written whenever the bound kernel is called, so no tensor may come to share them unseen.
        for value in self._by_name(args, named, out).values():
            if isinstance(value, Tensor):
                value.pinned()
        storages = self._operands(args, named, out)
        special = self.specialized(storages)
        values = None
        if out is not None:
            tensor = as_output(out)
            special.check_output(tensor.storage)
            if not special.fills_values or overlaps(tensor.storage, storages, self.result_name):
                raise ShapeError("bind cannot fill this output in place: it is sparse, or overlaps an operand\n  help: leave out= away")
            values = tensor.pinned().values
        call = special.bind(storages, values=values)
        return BoundKernel(call, self.result_name, special.fills_values, self._threads, (self.bind, storages))

    def assemble(self, /, *args: Any, **named: Any) -> Tensor:
        """Run on these operands, and keep the result's structure in mind: ``compute`` then fills in new values only.

        >>> import numpy as np, scipy.sparse as sp, sparseloom as sl
        >>> A = sl.asarray(sp.csr_array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0]]))
        >>> k = sl.program("C(i,j) = A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
        >>> C = k.assemble(A, A)
        >>> A.arrays["values"][:] = 1
        >>> k.compute(A, A, out=C).to_numpy()
        array([[2., 0., 1.],
               [0., 1., 0.],
               [1., 0., 1.]])
        """
        storages = self._operands(args, named, None)
        tensor = Tensor(self.specialized(storages).run(storages), self.result_name)
        remember_assembled(self._assembled, tensor, storages)
        return tensor

    def compute(self, /, *args: Any, out: Tensor, **named: Any) -> Tensor:
        """Compute the values of ``out``, which ``assemble`` made of operands with the same structure as these."""
        storages = self._operands(args, named, None)
        known = self._assembled.get(id(out))
        if known is None or not known.is_of(out):
            raise StorageError(f"out was not assembled by this kernel\n  help: make it with {self.result_name} = kernel.assemble(...)")
        known.check(storages, self.result_name)
        special = self.specialized(storages)
        if known.structure.format.shares_values:
            return out.replace_storage(special.run(storages))  # its structure follows from the values too
        special.compute(storages, out.with_structure(known.structure, known.places))
        return out

    def _entered(self, args: Sequence[Any], named: Mapping[str, Any], out: Any) -> dict[str, Storage]:
        """The operands by name, as they are stored."""
        storages: dict[str, Storage] = {}
        for name, value in self._by_name(args, named, out).items():
            storage = self._storage_of(name, value)
            order = self._orders[name]
            if len(storage.shape) != order:
                modes = "1 mode" if order == 1 else f"{order} modes"
                raise ShapeError(f"{name} has {modes} in {self._text}, but the operand has shape {storage.shape}")
            storages[name] = storage
        return storages

    def _operands(self, args: Sequence[Any], named: Mapping[str, Any], out: Any) -> dict[str, Storage]:
        """The operands by name, as the loops read them."""
        return self._as_read(self._entered(args, named, out))

    def _as_read(self, entered: Mapping[str, Storage]) -> dict[str, Storage]:
        """The operands as the loops read them: filled as a semiring asks, and in the formats that the kernel was made for."""
        storages = dict(entered)
        if self._ring is not None:
            common = self._common_dtype({name: storage.dtype for name, storage in storages.items()})
            forms = {name: self._wanted(name) for name in storages}
            storages = under_semiring(storages, forms, zero_in(common, self._ring), common)
        if self._formats is not None:
            # Only now, for what a conversion fills up must be worth what absent entries are worth.
            for name, storage in storages.items():
                wanted = self._wanted(name)
                if wanted is not None and storage.format is not wanted and storage.format != wanted:
                    storages[name] = convert(storage, wanted)
        return storages

    def _storage_of(self, name: str, value: Any) -> Storage:
        """The storage of an operand. A tensor is where its owner put it, and is not moved without being asked; anything else is."""
        if not isinstance(value, Tensor):
            return value if isinstance(value, Storage) else enter_aloud(value)
        storage = value.storage
        if self._target.calling is Calling.LAUNCHED and storage.device == "cpu":
            raise elsewhere(name)
        return storage

    def _wanted(self, name: str) -> Format | None:
        """The format that a tensor was declared with, if any was."""
        return None if self._formats is None else self._format if name == self.result_name else self._formats[name]

    def _by_name(self, args: Sequence[Any], named: Mapping[str, Any], out: Any) -> dict[str, Any]:
        if args and isinstance(args[0], dict):
            args, named = from_dict(args, named)
        if len(args) > len(self.operand_names):
            raise NotationError(
                f"{len(args)} operands were given, but {self._text} has {len(self.operand_names)}: {', '.join(self.operand_names)}"
            )
        given = dict(zip(self.operand_names, args, strict=False))
        for name, value in named.items():
            if name in given:
                raise NotationError(f"{name} was given twice, by position and by name")
            if name not in self._orders or (name == self.result_name and self._statement.op is None):
                hint = "\n  help: sl.program takes schedule= and formats=" if name in ("schedule", "formats") else ""
                raise NotationError(f"there is no operand {name!r} in {self._text}; there are {', '.join(self.operand_names)}{hint}")
            given[name] = value
        if self._statement.op is not None and self.result_name not in given:
            if out is None:
                raise NotationError(
                    f"{self._text} adds to {self.result_name}, so it needs the initial value\n  help: pass {self.result_name}=..., or out="
                )
            given[self.result_name] = out
        missing = [name for name in self.operand_names if name not in given]
        if missing:
            them = ", ".join(f"{name}=..." for name in missing)
            if out is not None and "out" in missing:
                raise name_is_an_option("out", self._text)
            raise NotationError(f"{self._text} needs {', '.join(missing)}, and nothing was given for it\n  help: pass {them}")
        return given

    def _common_dtype(self, dtypes: Mapping[str, DType]) -> DType:
        """The dtype to which all operands promote."""
        return promoted_dtype([dtypes[name] for name in self.operand_names]) if self.operand_names else FLOAT64

    @property
    def _steps(self) -> tuple[Step, ...]:
        """All statements, each with the dtype that was asked for."""
        last = Step(self._statement, self._format, self._schedule)
        return tuple(replace(step, dtype=self._dtype) for step in (*self._before, last))

    def specialized(self, storages: Mapping[str, Storage]) -> Specialization | Chain:
        """The program for operands that are stored as these are, by name."""
        # A schedule's loops do not depend on what operands hold; those that the compiler chooses do.
        known = NOTHING_KNOWN if self._schedule and not self._before else Statistics.of(storages, self._target.calling is Calling.LAUNCHED)
        # They may have been passed by name, in any order.
        operands = [storages[name] for name in self._orders if name in storages]
        key = (known, *((id(s.format), s.shape, s.dtype.num, s.index_dtype, s.fill or str(s.fill)) for s in operands))
        made = self._specialized.get(key)
        if made is None:
            if len(self._specialized) >= MOST_SPECIALIZED:
                self._specialized.clear()
            made = specialize_all(self._steps, storages, self._setting) if self._before else self._alone(storages)
            self._specialized[key] = made
        self._last = made
        return made

    def _alone(self, storages: Mapping[str, Storage]) -> Specialization | Chain:
        """The only statement on these operands."""
        typed = declare(self._statement, {name: declared(name, storage) for name, storage in storages.items()})
        if self._ring is not None and self._statement.op is None:
            typed = declare(typed, {self.result_name: replace(typed.lhs.tensor, fill=semiring_zero(typed, self._ring))})
        options = (self._format, self._dtype, self._sizes, self._schedule, self._workspace, self._target, self._path)
        return specialize(close_over(typed, self._ring), storages, *options)

    @property
    def _setting(self) -> Setting:
        return Setting(self._ring, self._sizes, self._workspace, self._target)

    def tune(self, /, *args: Any, seconds: float = 2.0, progress: bool | None = None, keep: bool = True, **named: Any) -> tuple[Tuned, ...]:
        """Measure the planner's best candidates on these operands for some seconds, and keep the quickest.

        It is used from then on for operands like these, by every kernel on this machine, and other processes find it on disk. What is
        returned tells for each statement what was measured. Sums may be added up in another order than before.
        ``keep=False`` only measures.

        >>> import numpy as np, sparseloom as sl
        >>> k = sl.program("C(i,j) = A(i,k) * B(k,j)")
        >>> tuned, = k.tune(np.ones((64, 64)), np.ones((64, 64)), seconds=0.01)
        >>> tuned.statement
        'C(i,j) = sum(k, A(i,k) * B(k,j))'
        """
        storages = self._operands(args, named, None)
        with threads(self._threads):
            found = tune(self.specialized(storages), storages, seconds, progress, keep)
        self._specialized.clear()
        self._recalled.clear()
        self._doors.forget()
        return found

    def teach(self, doors: Doors, door: Hashable, given: Sequence[Any], storages: Mapping[str, Storage]) -> None:
        """Let a door know the way that a call took on storages, which were ``given`` in this order."""
        self._learn(doors, door, given, storages, storages)

    # Looking inside

    def _inspected(self) -> Specialization | Chain:
        return self._last.current if self._last is not None else self.preview()

    @property
    def plan(self) -> PlanText:
        """How it runs, as a program: what ran last, or what would run where nothing is known of the operands.

        >>> import sparseloom as sl
        >>> sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}).plan
        A: csr
        y(i) = A(i,j) * x(j)
          plain
        """
        return plan_text(self._inspected(), self._ring)

    @property
    def schedule(self) -> str:
        """The schedule of the only statement, as text."""
        return the_schedule(self._inspected())

    def plan_for(self, /, *args: Any, **named: Any) -> PlanText:
        """How it would run on these operands. Nothing is computed, and no C compiler is needed."""
        return plan_text(self.specialized(self._operands(args, named, None)), self._ring)

    def preview(self, dtypes: Mapping[str, Any] | None = None) -> Specialization | Chain:
        """What would run on operands of these dtypes, float64 where none is given. It needs no data, and no C compiler.

        >>> import sparseloom as sl
        >>> k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
        >>> k.preview({"A": "float32", "x": "float32"}).stages.show("notation")
        'y(i) = sum(j, A(i,j) * x(j))'
        """
        given = {name: value_dtype(dtype) for name, dtype in (dtypes or {}).items()}
        for name in given:
            if name not in self.operand_names:
                raise NotationError(f"there is no operand {name!r} in {self._text}; there are {', '.join(self.operand_names)}")
        formats, usual = self._formats or {}, self._dtype or np.dtype(np.float64)
        tensors = {
            name: usually_stored(name, formats.get(name) or dense(self._orders[name]), given.get(name, usual))
            for name in self.operand_names
        }
        if self._ring is not None:
            common = self._common_dtype({name: tensor.dtype for name, tensor in tensors.items()})
            zero = zero_in(common, self._ring)
            sparse = [t for t in tensors.values() if not t.format.is_dense]
            tensors |= {t.name: replace(t, fill=zero, dtype=dtype_under(zero, t.dtype, common)) for t in sparse}
            tensors |= {self.result_name: replace(self._statement.lhs.tensor, fill=zero)} if self._statement.op else {}
        made = preview(self._steps, tensors, self._setting)
        return made if self._before else made.last
