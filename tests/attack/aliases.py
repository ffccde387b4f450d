"""Tensors are values: a pool of tensors made of each other, arrays of some of which are written to. No other tensor may change.

What is expected of every tensor is a copy of its values. Whoever writes through an array that a tensor gave him changes that tensor alone;
views of his own arrays are the exceptions that docs/copies-and-views.md lists.
"""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from conformance.kernels import interpret_small_kernels

import sparseloom as sl
from sparseloom.core.errors import SparseloomError
from sparseloom.surface import TABLE

NAME = "aliases"
COUNT = 3000
SHORT = 150

Rng = np.random.Generator
Array = np.ndarray[Any, Any]
FORMATS = ("dense", "dd:1,0", "csr", "csc", "coo", "dcsr", "dcsc", "bcsr(2,2)", "dia", "ell", "db", "bb", "sb", "u~q")
SIZE = 4

# Arguments of the functions of the table that take more than tensors, or tensors of certain values.
ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "reshape": lambda x: (x, (2, 8)), "expand_dims": lambda x: (x, 0), "broadcast_to": lambda x: (x, (4, 4)),
    "swapaxes": lambda x: (x, 0, 1), "moveaxis": lambda x: (x, 0, 0), "roll": lambda x: (x, 0), "concatenate": lambda x: ([x],),
    "concat": lambda x: ([x],), "stack": lambda x: ([x],), "vstack": lambda x: ([x],), "hstack": lambda x: ([x],),
    "block": lambda x: ([[x]],), "repeat": lambda x: (x, 1, 0),
    "tile": lambda x: (x, 1), "pad": lambda x: (x, 0), "where": lambda x: (True, x, x),
    "clip": lambda x: (x, -100, 100), "astype": lambda x: (x, x.dtype), "divmod": lambda x: (x, 2), "matrix_power": lambda x: (x, 1),
    "topk": lambda x: (x, 2), "take": lambda x: (x, [0, 1, 2, 3], 0), "take_along_axis": lambda x: (x, [[0], [1], [2], [3]], 1),
    "full_like": lambda x: (x, 2), "tensordot": lambda x: (x, 1, 0),
    "isin": lambda x: (x, [1, 2]), "searchsorted": lambda x: ([1.0, 2.0], x[0]),
    "meshgrid": lambda x: (x[0], x[0]), "eye": lambda x: (2,), "zeros": lambda x: (2,), "full": lambda x: (2, 1), "ones": lambda x: (2,),
    "empty": lambda x: (2,), "arange": lambda x: (2,),
    "linspace": lambda x: (0, 1, 2), "diag": lambda x: (x[0],), "vdot": lambda x: (x[0], x[1]),
    **dict.fromkeys("sum prod min max any all".split(), lambda x: (x, 0)),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), lambda x: (x[0],)),
}  # fmt: skip
INTEGERS = frozenset("bitwise_and bitwise_or bitwise_xor invert left_shift right_shift gcd lcm".split())


def _called(name: str) -> Callable[[Any], Any]:
    """A function of the table on one tensor."""
    function = TABLE[name].call

    def call(x: Any) -> Any:
        x = x.astype(int) if name in INTEGERS else x
        if name in ARGUMENTS:
            return function(*ARGUMENTS[name](x))
        needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        count = 1 if needed and needed[0].kind is inspect.Parameter.VAR_POSITIONAL else len(needed)
        if count == 1 and needed[0].kind is inspect.Parameter.VAR_POSITIONAL:
            return _one_or_two(function, x)
        return function(*(x,) * count)

    return call


def _one_or_two(function: Callable[..., Any], x: Any) -> Any:
    """A function that does not say how many tensors it takes; the second may be a number."""
    for arguments in ((x,), (x, x), (x, 1)):
        try:
            return function(*arguments)
        except SparseloomError as problem:
            last = problem
    raise last


I, J = sl.indices("i j")  # noqa: E741 - the names of the paper
COPY = sl.program("C(i,j) = A(i,j)")
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    **{f"sl.{name}": _called(name) for name in TABLE},
    "+x": lambda x: +x,
    "-x": lambda x: -x,
    "x.conj": lambda x: x.conj(),
    "x.real": lambda x: x.real,
    "x.T": lambda x: x.T,
    "x.T.T": lambda x: x.T.T,
    "x.mT": lambda x: x.mT,
    "transpose same": lambda x: x.transpose(0, 1),
    "permute same": lambda x: sl.permute_dims(x, (0, 1)),
    "moveaxis": lambda x: sl.moveaxis(x, 0, 1),
    "np.transpose": np.transpose,
    "np.squeeze": np.squeeze,
    "np.copy": np.copy,
    "x[...]": lambda x: x[...],
    "x[:]": lambda x: x[:],
    "x[0:2]": lambda x: x[0:2],
    "x[1:]": lambda x: x[1:],
    "x[0]": lambda x: x[0],
    "x[:, 1]": lambda x: x[:, 1],
    "x[:, 0:2]": lambda x: x[:, 0:2],
    "x[None]": lambda x: x[None],
    "x[::2]": lambda x: x[::2],
    "x[::-1]": lambda x: x[::-1],
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x * 1": lambda x: x * 1,
    "x + 0": lambda x: x + 0,
    "x @ eye": lambda x: x @ sl.eye(SIZE),
    "sum of no modes": lambda x: x.sum(axis=()),
    "max of no modes": lambda x: x.max(axis=()),
    "x.mean": lambda x: x.mean(axis=0),
    "astype same": lambda x: x.astype(x.dtype),
    "astype": lambda x: x.astype(np.complex128),
    "x.copy": lambda x: x.copy(),
    "to copy": lambda x: x.to(x.format, copy=True), "to without zeros": lambda x: x.to(x.format, drop_zeros=True),
    **{f"to {form}": (lambda x, form=form: x.to(form)) for form in FORMATS},
    "asarray name": lambda x: sl.asarray(x, name="other"),
    "asarray fill": lambda x: sl.asarray(x, fill=x.fill, name="other"),
    "asarray dtype": lambda x: sl.asarray(x, dtype=x.dtype, name="other"),
    "asarray copy": lambda x: sl.asarray(x, copy=True),
    "asarray format": lambda x: sl.asarray(x, format="csr", name="other"),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "out of band": lambda x: _out_of_band(x),
    "evaluate": lambda x: sl.evaluate("C(i,j) = A(i,j)", A=x),
    "evaluate csr": lambda x: sl.evaluate("C(i,j) = A(i,j)", A=x, format="csr"),
    "evaluate turned": lambda x: sl.evaluate("C(j,i) = A(i,j)", A=x),
    "evaluate sum": lambda x: sl.evaluate("C(i,j) = A(i,j) + A(i,j)", A=x),
    "evaluate max": lambda x: sl.evaluate("C(i) = max(j, A(i,j))", A=x),
    "einsum": lambda x: sl.einsum("ij->ij", x),
    "einsum turned": lambda x: sl.einsum("ij->ji", x),
    "program": lambda x: COPY(x),
    "program out": lambda x: COPY(x, out=sl.zeros((SIZE, SIZE), dtype=x.dtype)),
    "bound": lambda x: COPY.bind(x)(),
    "builder": lambda x: x.builder().build(),
    "builder set": lambda x: _set(x),
    "np.add out": lambda x: _added(x),
    "np.positive": np.positive,
    "method reshape": lambda x: x.reshape(2, 8),
    "method ravel": lambda x: x.ravel(),
    "method squeeze": lambda x: x.squeeze(),
    "method clip": lambda x: x.clip(-100, 100),
    "method round": lambda x: x.round(),
    "method take": lambda x: x.take([0, 1, 2, 3], 0),
    "namespace reshape": lambda x: sl.array_api.reshape(x, (8, 2)),
    "namespace nonzero": lambda x: sl.array_api.nonzero(x),
    "namespace asarray": lambda x: sl.array_api.asarray(x, copy=True),
    "np.atleast_2d": lambda x: np.atleast_2d(x.to("dense")),
    "x.nonzero": lambda x: x.nonzero(), "to_numpy of sparse": lambda x: x.to_numpy() if not x.format.is_dense else None,
    "x.toarray": lambda x: x.toarray() if not x.format.is_dense else None,
}  # fmt: skip
VIEWS = frozenset(("x.T", "x.T.T", "x.mT", "transpose same"))
"""What is a view of a caller's arrays if its operand is."""


def _out_of_band(x: Any) -> Any:
    """A pickle whose arrays are passed as they are."""
    buffers: list[Any] = []
    text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(text, buffers=buffers)


def _set(x: Any) -> Any:
    builder = x.builder()
    builder[0, 0] = 7
    return builder.build()


def _added(x: Any) -> Any:
    out = sl.zeros((SIZE, SIZE), dtype=x.dtype)
    np.add(x, 0, out=out)
    return out


def arrays_through(x: Any) -> Iterator[tuple[str, Callable[[], list[Array]]]]:
    """All the ways in which a caller gets arrays of a tensor to write to."""
    yield "arrays", lambda: list(x.arrays.values())
    if x.format.is_dense:
        yield "to_numpy", lambda: [x.to_numpy()]
        yield "asarray", lambda: [np.asarray(x)]
        yield "dlpack", lambda: [np.from_dlpack(x)]
        yield "atleast_1d", lambda: [np.atleast_1d(x)]
    elif x.fill == 0 and x.ndim in (1, 2):
        yield "to_scipy", lambda: _of_scipy(x.to_scipy())
    if str(x.format) in ("csr", "csc", "dcsr", "dcsc", "coo", "dense(2)"):
        yield "binsparse", lambda: list(x.__binsparse__().values())


def _of_scipy(matrix: Any) -> list[Array]:
    coords = list(matrix.coords) if matrix.format == "coo" else []
    return [array for array in (*vars(matrix).values(), *coords) if isinstance(array, np.ndarray)]


def write(arrays: list[Array], indices: bool = True) -> None:
    """Change everything in arrays: values become other values, indices are turned around."""
    for array in arrays:
        if not array.flags.writeable or not array.size:
            continue
        if array.dtype.kind in "fc":
            array[...] = np.where(np.isfinite(array), array, 0) % 100 + 17 if array.dtype.kind == "f" else array + 17
        elif indices:
            array[...] = array[..., ::-1].copy() if array.ndim else array


def tensors_in(made: Any) -> Iterator[Any]:
    """The tensors and arrays of a result."""
    if isinstance(made, (tuple, list)):
        for part in made:
            yield from tensors_in(part)
    elif isinstance(made, (sl.Tensor, np.ndarray)):
        yield made


def worth(x: Any) -> Array:
    """A copy of what a tensor holds, got without asking it for an array."""
    if isinstance(x, np.ndarray):
        return x.copy()
    return sl.asarray(x, copy=True).to_numpy()


def made_in(format: str, rng: Rng, complex_values: bool = False) -> Any:
    """A tensor of our own in a format."""
    dense = _dense(rng)
    made = sl.asarray(dense + 2j * dense if complex_values else dense, copy=True).to(format)
    return sl.asarray(made, copy=True)


def _dense(rng: Rng) -> Array:
    dense = np.where(rng.random((SIZE, SIZE)) < 0.6, rng.integers(1, 9, (SIZE, SIZE)), 0).astype(float)
    dense[np.arange(SIZE), np.arange(SIZE)] = 1
    return dense


def of_a_caller(format: str, rng: Rng) -> tuple[Any, list[Array]]:
    """A tensor over a caller's arrays, and these."""
    own = made_in(format, rng)
    arrays = own.arrays
    return sl.from_arrays(own.format, own.shape, arrays, own.fill), [array for array in arrays.values() if array.ndim]


def apply(operation: Callable[[Any], Any], x: Any) -> list[Any]:
    """The tensors and arrays that an operation makes; none if it refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return list(tensors_in(operation(x)))
        except SparseloomError:
            return []


@dataclass
class Pool:
    """Tensors, what they are worth, and arrays of some of them."""

    tensors: list[Any] = field(default_factory=list)
    worth: list[Array] = field(default_factory=list)
    held: list[tuple[int, list[Array]]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def add(self, made: Any) -> None:
        self.tensors.append(made)
        self.worth.append(worth(made))

    def check(self, written: int) -> None:
        """Only the tensor that was written to may have changed."""
        for k, tensor in enumerate(self.tensors):
            if k == written:
                continue
            now = worth(tensor)
            assert np.array_equal(now, self.worth[k], equal_nan=now.dtype.kind in "fc"), f"tensor {k} changed: {'; '.join(self.done)}"
        self.worth[written] = worth(self.tensors[written])


_OUT = sl.program("C(i,j) = 2 * A(i,j)")


_interpret = functools.cache(interpret_small_kernels)


def trial(rng: Rng) -> str:
    """Make tensors of tensors, take arrays of them, write to these, and compute into some of them."""
    _interpret()
    pool = Pool()
    pool.add(made_in(str(rng.choice(FORMATS)), rng, rng.random() < 0.2))
    names = list(OPERATIONS)
    sharing = [name for name in names if name.startswith(("x", "to", "+", "copy", "asarray", "method")) or "." not in name]
    for _ in range(int(rng.integers(4, 16))):
        k = int(rng.integers(len(pool.tensors)))
        x = pool.tensors[k]
        match int(rng.integers(6)):
            case 0 | 1 if x.shape == (SIZE, SIZE):
                name = str(rng.choice(sharing if rng.random() < 0.7 else names))
                pool.done.append(f"{len(pool.tensors)} = {name} of {k}")
                for made in apply(OPERATIONS[name], x):
                    if isinstance(made, sl.Tensor):
                        pool.add(made)
            case 2:
                ways = list(arrays_through(x))
                way, take = ways[rng.integers(len(ways))]
                pool.done.append(f"{way} of {k}")
                pool.held.append((k, take()))
            case 3 if pool.held:
                which, arrays = pool.held[rng.integers(len(pool.held))]
                pool.done.append(f"write to {which}")
                write(arrays, indices=False)
                pool.check(which)
            case 4 if x.format.is_dense and x.format.modes == tuple(range(x.ndim)) and x.shape == (SIZE, SIZE) and x.dtype == np.float64:
                pool.done.append(f"compute into {k}")
                _OUT(np.ones((SIZE, SIZE)), out=x)
                pool.check(k)
            case 5 if x.shape == (SIZE, SIZE):
                pool.done.append(f"bound to {k}")
                bound = COPY.bind(x)
                bound()
                pool.add(bound())
                last = len(pool.tensors) - 1
                pool.done.append(f"{last} is its result")
    return "right"
