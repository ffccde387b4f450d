"""Doors for whole arrays: the arrays of a format, SciPy's classes behind their backs, PyTorch and PyData/Sparse, dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from attack.arrays import FOREIGN_VALUES, RELAID, VALUE_DTYPES, damaged, is_plain, pick, plain, plain_truths, relaid, retyped
from attack.uses import any_format, assert_usable
from levels.random_storage import random_entries
from levels.slow_checker import keeps_its_promises
from levels.slow_reader import read_slowly

import sparseloom as sl
from sparseloom.formats.level import LevelData
from sparseloom.formats.pack import pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format


def judge(rng: np.random.Generator, meaning: Storage | None, must_take: bool, given: Any, enter: Callable[[], sl.Tensor]) -> str:
    """Enter: what has no meaning must be refused, what has one must read so, and be taken if nothing about it is strange."""
    sound = meaning is not None and keeps_its_promises(meaning)
    try:
        tensor = enter()
    except sl.CompilerBug:
        raise
    except sl.SparseloomError as error:
        assert not (sound and must_take), f"refused although sound: {error}\n{given}"
        return "refused"
    assert sound and meaning is not None, f"accepted although damaged: {given} as {tensor.format} {tensor.shape} {tensor.arrays}"
    assert_usable(rng, tensor, read_slowly(meaning))
    return "right"


def random_storage(rng: np.random.Generator, form: sl.Format, least: int = 1) -> Storage:
    """A sound storage of small whole numbers."""
    shape = tuple(int(size) for size in rng.integers(least, 6, form.order))
    coordinates, values = random_entries(rng, shape, repeat=not form.is_unique)
    dtype = np.dtype(pick(rng, (*["float64"] * 8, *VALUE_DTYPES)))
    duplicates = "sum" if form.is_unique else "keep"
    values = np.abs(values).astype(dtype) if dtype.kind in "bu" else values.astype(dtype)
    width = np.dtype(pick(rng, ("int32", "int64")))
    return pack(form, shape, coordinates, values, index_dtype=width, duplicates=duplicates)


def strange_values(rng: np.random.Generator, values: np.ndarray) -> tuple[Any, np.ndarray | None, bool]:
    """Values as they are handed in, what they mean (None: nothing that could be taken), and whether they must be taken."""
    match rng.integers(9):
        case 0:
            made = relaid(rng, values)
            return made, np.asarray(made).astype(values.dtype) if values.dtype.kind in "iu" else values, False
        case 1:
            short = values[:-1]
            return short, short, False
        case 2:
            longer = np.append(values, values[:1])
            return longer, longer, False
        case 3:
            return values.reshape(1, -1), None, False
        case 4:
            return np.ma.masked_array(values, np.arange(len(values)) == 0), values if not len(values) else None, False
        case 5:
            return foreign(rng, values), values, False
        case 6:
            return pick(rng, (None, "values", {}, object(), 3 + 0j)), None, False
    return values, values, True


def foreign(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Values of a dtype that kernels do not know."""
    try:
        return values.astype(pick(rng, FOREIGN_VALUES))
    except (TypeError, ValueError):
        return np.zeros(len(values), "V8")


def damaged_levels(rng: np.random.Generator) -> str:
    """``from_arrays`` with one or two arrays, or a scalar, made strange or wrong."""
    storage = random_storage(rng, any_format(rng, int(rng.integers(1, 4))))
    given: dict[str, Any] = {f"{name}{k}": a for k, data in enumerate(storage.levels) for name, a in data.arrays.items()}
    scalars: dict[str, Any] = {f"{name}{k}": n for k, data in enumerate(storage.levels) for name, n in data.scalars.items()}
    for _ in range(int(rng.choice((0, 1, 1, 1, 2)))):
        if given:
            chosen = pick(rng, given)
            way = pick(rng, (damaged, damaged, relaid, retyped))
            given[chosen] = way(rng, storage.levels[int(chosen[-1])].arrays[chosen[:-1]])
    if scalars and rng.random() < 0.2:
        chosen = pick(rng, scalars)
        scalars[chosen] = pick(rng, (-1, 0, 1, 2**31, 2**62, 2**63, 2**70, 1.5, None, "2", np.array([1, 2]), np.uint8(2), True, 1j))
    values, meant, plainly = strange_values(rng, storage.values)
    meaning = _meaning(storage, given, scalars, meant)
    widths = {a.dtype for a in given.values() if isinstance(a, np.ndarray) and a.dtype != bool}
    must_take = plainly and all(map(is_plain, given.values())) and len(widths) <= 1 and all(type(n) is int for n in scalars.values())
    arrays = {**given, **scalars, "values": values}
    if rng.random() < 0.03:
        arrays.pop(pick(rng, arrays))
        meaning = None
    return judge(rng, meaning, must_take, arrays, lambda: sl.from_arrays(storage.format, storage.shape, arrays))


def _meaning(storage: Storage, given: dict[str, Any], scalars: dict[str, Any], values: np.ndarray | None) -> Storage | None:
    """The storage that these arrays are, whatever their layout; None if one of them holds no indices."""
    numbers = {name: plain_truths(array) if name.startswith("present") else plain(array) for name, array in given.items()}
    whole = {name: plain(np.asarray(n)) for name, n in scalars.items() if not (isinstance(n, int) and n >= 2**63)}
    if values is None or any(array is None for array in numbers.values()) or len(whole) < len(scalars):
        return None
    if any(array is None or array.size != 1 for array in whole.values()):
        return None
    levels = tuple(
        LevelData(
            {name: numbers[f"{name}{k}"] for name in level.array_names},  # type: ignore[misc]
            {name: int(whole[f"{name}{k}"].item()) for name in level.scalar_names},  # type: ignore[union-attr]
        )
        for k, level in enumerate(storage.format.levels)
    )
    return replace(storage, levels=levels, values=values)


def storage_meaning(storage: Storage, arrays: dict[str, Any], values: np.ndarray | None) -> tuple[Storage | None, bool]:
    """The meaning of arrays by name, and whether all of them must be taken if it is sound."""
    scalar_names = {f"{name}{k}" for k, level in enumerate(storage.format.levels) for name in level.scalar_names}
    given = {name: a for name, a in arrays.items() if name != "values" and name not in scalar_names}
    scalars = {name: arrays[name] for name in scalar_names}
    widths = {a.dtype for a in given.values() if isinstance(a, np.ndarray) and a.dtype != bool}
    return _meaning(storage, given, scalars, values), all(map(is_plain, given.values())) and len(widths) <= 1


SCIPY = {
    "csr": ("csr", "du~", ("indptr", "indices")), "csc": ("csc", "du~:1,0", ("indptr", "indices")),
    "bsr": ("bcsr(2,2)", "du~dd:0,1,0,1/2,2", ("indptr", "indices")), "coo": ("coo", "u~q~+", ("row", "col")),
}  # fmt: skip


def damaged_scipy(rng: np.random.Generator) -> str:
    """A SciPy matrix whose arrays were set from outside, by ``asarray`` or straight into a kernel."""
    kind = pick(rng, SCIPY)
    own, loose, parts = SCIPY[kind]
    storage = random_storage(rng, as_format(own, 2), 2)
    if kind == "bsr" and any(size % 2 for size in storage.shape):
        kind, own, loose, parts = "csr", *SCIPY["csr"]
        storage = random_storage(rng, as_format(own, 2), 2)
    matrix = sl.asarray(storage_tensor(storage)).to_scipy()
    given = {part: np.array(getattr(matrix, part)) for part in parts}
    for _ in range(int(rng.choice((0, 1, 1, 2)))):
        part = pick(rng, parts)
        given[part] = pick(rng, (damaged, damaged, relaid, retyped))(rng, np.array(getattr(matrix, part)))
    data, meant, plainly = strange_values(rng, np.array(matrix.data).reshape(-1))
    if kind == "bsr":
        data, meant, plainly = matrix.data.copy(), matrix.data.reshape(-1).copy(), True
    for name, array in {**given, "data": data}.items():
        _set_behind_its_back(matrix, name, array)
    meaning = _scipy_meaning(kind, as_format(loose, 2), matrix.shape, given, meant)
    must_take = plainly and all(map(is_plain, given.values()))
    return judge(rng, meaning, must_take, [given, data], lambda: sl.asarray(matrix, copy=pick(rng, (None, True))))


def storage_tensor(storage: Storage) -> sl.Tensor:
    """A tensor over a storage."""
    return sl.Tensor(storage)


def _set_behind_its_back(matrix: Any, name: str, array: Any) -> None:
    if name in ("row", "col"):
        both = list(matrix.coords)
        both[name == "col"] = array
        matrix.coords = tuple(both)
    else:
        setattr(matrix, name, array)


def _scipy_meaning(kind: str, loose: sl.Format, shape: tuple[int, ...], given: dict[str, Any], values: np.ndarray | None) -> Storage | None:
    """SciPy's own reading: arrays may be longer than what is used, and coordinates unsorted and repeated."""
    numbers = {name: plain_truths(array) if name.startswith("present") else plain(array) for name, array in given.items()}
    if values is None or any(array is None or array.ndim != 1 for array in numbers.values()):
        return None
    first, second = numbers.values()
    if kind == "coo":
        if not len(first) == len(second) == len(values):  # type: ignore[arg-type]
            return None
        levels = (LevelData({"pos": np.array([0, len(values)]), "crd": first}), LevelData({"crd": second}))  # type: ignore[dict-item]
    else:
        levels = (LevelData(), LevelData({"pos": first, "crd": second}))  # type: ignore[dict-item]
        levels = (*levels, LevelData(), LevelData())[: len(loose.levels)]
    return Storage(loose, shape, levels, values)


class _Standing:
    """What the stand-ins for other libraries share: attributes, and methods that answer with them."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def stand_in_for_torch(rng: np.random.Generator) -> str:
    """An object of a class that calls itself torch.Tensor, with arrays that PyTorch would not let pass."""
    layout = pick(rng, ("csr", "csc", "coo"))
    own, loose, parts = SCIPY[layout]
    storage = random_storage(rng, as_format(own, 2), 2)
    matrix = storage_tensor(storage).to_scipy()
    given = {part: np.array(getattr(matrix, part)) for part in parts}
    part = pick(rng, parts)
    given[part] = pick(rng, (damaged, damaged, relaid, retyped))(rng, given[part])
    if isinstance(given[part], np.ma.MaskedArray):
        given[part] = np.ma.getdata(given[part])  # PyTorch has no masks
    values = np.array(matrix.data)
    kind = type("Tensor", (_Standing,), {"__module__": "torch"})
    first, second = (given[name] for name in parts)
    device = SimpleNamespace(type=pick(rng, ("cpu", "cpu", "cpu", "cpu", "meta")))
    tensor = kind(device=device, layout=f"torch.sparse_{layout}", shape=storage.shape)
    tensor.detach = lambda: tensor
    tensor.dense_dim = lambda: 0
    names = {"csr": ("crow_indices", "col_indices", "values"), "csc": ("ccol_indices", "row_indices", "values"), "coo": ("", "", "_values")}
    for name, array in zip(names[layout], (first, second, values), strict=True):
        setattr(tensor, name or "unused", lambda array=array: array)
    if layout == "coo":
        if not all(isinstance(a, np.ndarray) for a in (first, second)) or np.shape(first) != np.shape(second):
            return "right"  # one array of coordinates cannot be ragged
        stacked = np.stack([first, second])
        tensor._indices = lambda: stacked
        given = {"row": stacked[0], "col": stacked[1]}
    meaning = _scipy_meaning(layout, as_format(loose, 2), storage.shape, given, values)
    return judge(rng, meaning, False, given, lambda: sl.asarray(tensor))


def stand_in_for_pydata(rng: np.random.Generator) -> str:
    """An object of a class that comes from a package called sparse."""
    storage = random_storage(rng, as_format("coo", 2), 2)
    given = {name: np.array(storage.levels[k].arrays["crd"]) for k, name in enumerate(("row", "col"))}
    part = pick(rng, given)
    given[part] = pick(rng, (damaged, damaged, relaid, retyped))(rng, given[part])
    fill = pick(rng, (storage.dtype.type(0), storage.dtype.type(1)))
    values, meant, _ = strange_values(rng, storage.values)
    kind = type("COO", (_Standing,), {"__module__": "sparse"})
    coordinates = tuple(given.values())
    array = kind(coords=coordinates, data=values, shape=storage.shape, fill_value=fill)
    meaning = _scipy_meaning("coo", as_format("u~q~+", 2), storage.shape, given, meant)
    meaning = meaning and replace(meaning, fill=fill.item())
    return judge(rng, meaning, False, vars(array), lambda: sl.asarray(array))


def any_dense_array(rng: np.random.Generator) -> str:
    """A dense array in any layout, class and dtype."""
    shape = tuple(int(n) for n in rng.integers(0, 5, int(rng.integers(0, 4))))
    dtype = np.dtype(pick(rng, VALUE_DTYPES))
    array = rng.integers(0, 3, shape).astype(dtype)
    given: Any = array
    match rng.integers(6):
        case 0:
            given = pick(rng, RELAID)(array) if array.size else array  # lists lose the shape of nothing
        case 1:
            given = np.broadcast_to(array, (3, *shape))
            array = np.array(given)
        case 2:
            given = array = array.transpose(rng.permutation(array.ndim))
        case 3:
            given = foreign(rng, array.reshape(-1)).reshape(shape)
        case 4:
            given = np.ma.masked_array(array, True)
            array = array if array.size == 0 else np.full(shape, -99.0)  # nothing that it may become
    tensor = sl.asarray(given, copy=pick(rng, (None, True, False)), format=any_format(rng, array.ndim) if rng.random() < 0.3 else None)
    assert_usable(rng, tensor, array)
    return "right"
