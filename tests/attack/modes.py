"""Modes up to 2^62: every format, conversion, statement, workspace, method and file, compared with a dictionary of coordinates."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from attack.far import (
    Entries,
    added,
    assert_same,
    contract,
    draw_extent,
    draw_format,
    draw_tensor,
    meaning,
)

import sparseloom as sl
from sparseloom.core import room
from sparseloom.core.settings import settings

NAME = "modes"
COUNT = 2000
SHORT = 6  # tests/laws/test_far_coordinates.py does forty more

WORKSPACES = (None, None, "hash", "sort")
# The result's variables; the operands with theirs, all multiplied.
PRODUCTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ij", ("ij",)), ("ji", ("ij",)), ("kij", ("ijk",)), ("jki", ("ijk",)), ("i", ("i",)),
    ("ij", ("ij", "ij")), ("ij", ("ij", "ji")), ("ij", ("ij", "i")), ("ij", ("ij", "j")), ("i", ("i", "i")),
    ("ij", ("ik", "kj")), ("ij", ("ki", "kj")), ("ij", ("ik", "jk")), ("ji", ("ik", "kj")), ("ij", ("i", "j")),
    ("i", ("ij", "j")), ("i", ("ji", "j")), ("ij", ("ijk", "k")), ("jk", ("ijk", "i")), ("ik", ("ijk", "j")),
    ("ijl", ("ijk", "kl")), ("lj", ("ijk", "il", "k")), ("il", ("ij", "jk", "kl")), ("ij", ("ikl", "kj", "lj")),
    ("i", ("ij",)), ("j", ("ij",)), ("", ("ij",)), ("", ("ijk",)), ("ik", ("ijk",)), ("j", ("ijk",)), ("i", ("ii",)), ("", ("i", "i")),
    ("ijkl", ("ijkl",)), ("ljik", ("ijkl",)), ("ii", ("i",)), ("iji", ("ij",)),
)  # fmt: skip


def trial(rng: np.random.Generator) -> str:
    """One program."""
    with compiled_conversions(rng.random() < 0.5), little_memory():
        return KINDS[rng.integers(len(KINDS))](rng)


@contextmanager
def little_memory() -> Iterator[None]:
    """As if 2 GiB were free: what is refused then does not depend on the machine, and several trials go side by side."""
    before, room.free_memory = room.free_memory, lambda: 2 << 30
    try:
        yield
    finally:
        room.free_memory = before


@contextmanager
def compiled_conversions(wanted: bool) -> Iterator[None]:
    """Convert with kernels however few entries there are."""
    before, settings.small_conversion = settings.small_conversion, 0 if wanted else settings.small_conversion
    try:
        yield
    finally:
        settings.small_conversion = before


def shape_of(rng: np.random.Generator, order: int) -> tuple[int, ...]:
    """Some extents."""
    return tuple(draw_extent(rng) for _ in range(order))


def conversions(rng: np.random.Generator) -> str:
    """From format to format to format; the tensor stays what it is."""
    shape = shape_of(rng, int(rng.integers(1, 5)))
    tensor, entries = draw_tensor(rng, shape)
    for _ in range(3):
        form = draw_format(rng, shape)
        tensor = tensor.to(form, drop_zeros=bool(rng.random() < 0.2))
        assert_same(tensor, entries, f"to {form}")
    return "right"


def many_entries(rng: np.random.Generator) -> str:
    """So many that every pass of a sort has something to do, and lists grow."""
    shape = shape_of(rng, int(rng.integers(1, 4)))
    count = int(rng.integers(2000, 6000))
    columns = np.array([rng.integers(0, size, count) for size in shape])
    columns[:, : count // 3] = columns[:, count // 3 : 2 * (count // 3)]
    values = rng.integers(1, 5, count).astype(np.float64)
    wanted: Entries = {}
    for place, value in zip(map(tuple, columns.T.tolist()), values.tolist(), strict=True):
        wanted[place] = wanted.get(place, 0) + value
    first, second = draw_format(rng, shape), draw_format(rng, shape)
    tensor = sl.from_coo(columns, values, shape, first)
    assert_same(tensor, wanted, f"made as {first}")
    assert_same(tensor.to(second), wanted, f"from {first} to {second}")
    return "right"


def products(rng: np.random.Generator) -> str:
    """A product, summed over what the result lacks."""
    result, operands = PRODUCTS[rng.integers(len(PRODUCTS))]
    sizes = {var: draw_extent(rng) for var in "ijkl"}
    if ("ij" in operands and "ji" in operands) or rng.random() < 0.2:
        sizes = dict.fromkeys("ijkl", sizes["i"])
    drawn = {name: draw_tensor(rng, [sizes[var] for var in variables]) for name, variables in zip("ABCD", operands, strict=False)}
    right = " * ".join(f"{name}({','.join(variables)})" for name, variables in zip(drawn, operands, strict=True))
    wanted = contract(result, [(entries, variables) for (_, entries), variables in zip(drawn.values(), operands, strict=True)])
    form = draw_format(rng, [sizes[var] for var in result])
    left = f"R({','.join(result)})" if result else "R"
    factor = int(rng.integers(1, 4))
    text = f"{left} = {f'{factor} * ' if factor > 1 else ''}{right}"
    tensors = {name: tensor for name, (tensor, _) in drawn.items()}
    target = "interpret" if rng.random() < 0.1 else "c"
    made = sl.evaluate(text, **tensors, format=form, workspace=WORKSPACES[rng.integers(len(WORKSPACES))], target=target)
    assert_same(made, added((factor, wanted)), f"{text} as {form} of {[str(t.format) for t in tensors.values()]}")
    return "right"


def sums(rng: np.random.Generator) -> str:
    """A sum of two or three tensors, some with their modes in another order, and once more into an accumulated result."""
    order = int(rng.integers(1, 4))
    size = draw_extent(rng)
    shape = (size,) * order if rng.random() < 0.5 else shape_of(rng, order)
    square = len(set(shape)) == 1
    variables = "ijk"[:order]
    terms, parts, tensors = [], [], {}
    for name in "ABC"[: rng.integers(2, 4)]:
        tensor, entries = draw_tensor(rng, shape)
        mine = "".join(rng.permutation(list(variables))) if square and rng.random() < 0.4 else variables
        factor = int(rng.choice((1, 1, 2, -1)))
        terms.append(f"{factor} * {name}({','.join(mine)})" if factor != 1 else f"{name}({','.join(mine)})")
        parts.append((factor, contract(variables, [(entries, mine)])))
        tensors[name] = tensor
    form = draw_format(rng, shape)
    left, wanted = f"R({','.join(variables)})", added(*parts)
    text = f"{left} = {' + '.join(terms)}"
    made = sl.evaluate(text, **tensors, format=form, workspace=WORKSPACES[rng.integers(len(WORKSPACES))])
    what = f"{text} as {form} of {[str(t.format) for t in tensors.values()]}"
    assert_same(made, wanted, what)
    if rng.random() < 0.3:
        again = sl.evaluate(f"{left} += {terms[0]}", A=tensors["A"], R=made, format=form)
        assert_same(again, added((1, wanted), parts[0]), f"+= {what}")
    return "right"


def methods(rng: np.random.Generator) -> str:
    """Operators, slices and reductions of tensors."""
    shape = shape_of(rng, int(rng.integers(1, 4)))
    tensor, entries = draw_tensor(rng, shape)
    other, others = draw_tensor(rng, shape)
    match rng.integers(6):
        case 0:
            assert_same(tensor + other, added((1, entries), (1, others)), f"{tensor.format} + {other.format}")
            assert_same(tensor - 2 * other, added((1, entries), (-2, others)), f"{tensor.format} - {other.format}")
        case 1:
            both = {place: value * others.get(place, 0) for place, value in entries.items()}
            assert_same(tensor * other, both, f"{tensor.format} * {other.format}")
        case 2:
            axes = tuple(int(axis) for axis in rng.permutation(len(shape)))
            wanted = {tuple(place[axis] for axis in axes): value for place, value in entries.items()}
            assert_same(tensor.transpose(axes), wanted, f"{tensor.format} transposed to {axes}")
        case 3:
            return slices(rng, tensor, entries)
        case 4:
            return reductions(tensor, entries)
        case _:
            return matrices(rng)
    return "right"


def matrices(rng: np.random.Generator) -> str:
    """``A @ B``, and a bound kernel that fills a known structure again."""
    n, m, k = shape_of(rng, 3)
    left, lefts = draw_tensor(rng, (n, k))
    right, rights = draw_tensor(rng, (k, m))
    wanted = contract("ij", [(lefts, "ik"), (rights, "kj")])
    kernel = sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": left.format, "B": right.format, "C": "dcsr"})
    made = kernel.assemble(left, right)
    assert_same(made, wanted, "assembled")
    made.storage.values[:] = 7
    assert_same(kernel.compute(left, right, out=made), wanted, "computed again")
    if not (left.format.is_dense or right.format.is_dense):
        assert_same(left @ right, wanted, f"{left.format} @ {right.format}")
    return "right"


def slices(rng: np.random.Generator, tensor: sl.Tensor, entries: Entries) -> str:
    """A part of a tensor: a range, every so many, one place, some places."""
    mode = int(rng.integers(len(tensor.shape)))
    size = tensor.shape[mode]
    key: list[object] = [slice(None)] * len(tensor.shape)
    begin, end = sorted(int(n) for n in rng.integers(0, size + 1, 2))
    places = [place[mode] for place in entries] or [size - 1]
    match rng.integers(4):
        case 0:
            part, moved = slice(begin, end), {at: at - begin for at in places if begin <= at < end}
        case 1:
            step = int(rng.choice((2, 3, -1, -2, 2**31, 2**40)))
            inside = range(size)[::step]
            part, moved = slice(None, None, step), {at: inside.index(at) for at in places if at in inside}
        case 2:
            at = places[rng.integers(len(places))]
            key[mode] = at - size if rng.random() < 0.3 else at
            wanted = {(*place[:mode], *place[mode + 1 :]): value for place, value in entries.items() if place[mode] == at}
            found = tensor[tuple(key)]
            if len(tensor.shape) == 1:
                assert found == wanted.get((), 0), f"[{at}] is {found}, not {wanted.get((), 0)}"
                return "right"
            assert_same(found, wanted, f"{tensor.format} at {at} of mode {mode}")
            return "right"
        case _:
            chosen = list(dict.fromkeys(places[: rng.integers(1, 5)]))
            part, moved = chosen, {at: k for k, at in enumerate(chosen)}  # type: ignore[assignment]
    key[mode] = part
    wanted = {(*p[:mode], moved[p[mode]], *p[mode + 1 :]): value for p, value in entries.items() if p[mode] in moved}
    assert_same(tensor[tuple(key)], wanted, f"{tensor.format}: {part} of mode {mode}")
    return "right"


def reductions(tensor: sl.Tensor, entries: Entries) -> str:
    """Over all coordinates, most of which are absent."""
    places = int(np.prod(tensor.shape, dtype=object))
    values = [value for value in entries.values() if value]
    zeros = [0] if len(values) < places else []
    assert tensor.sum() == sum(values), f"the sum of {tensor.format} {tensor.shape} is {tensor.sum()}, not {sum(values)}"
    assert tensor.max() == max([*values, *zeros]), f"max: {tensor.max()}"
    assert tensor.min() == min([*values, *zeros]), f"min: {tensor.min()}"
    assert tensor.any() == any(values), f"any: {tensor.any()}"
    assert tensor.all() == (not zeros), f"all: {tensor.all()}"
    assert tensor.prod() == (0 if zeros else np.prod(values)), f"prod: {tensor.prod()}"
    assert np.isclose(tensor.mean(), sum(values) / places), f"mean: {tensor.mean()}"
    counted = tensor.to("coo" if tensor.ndim > 1 else "s")
    whole, wanted_sum = sl.asarray(counted, fill=1.0).sum(), sum(values) + places - counted.nnz
    assert np.isclose(whole, wanted_sum), f"filled with 1, the sum is {whole}, not {wanted_sum}"
    if tensor.ndim > 1:
        wanted = contract("i", [(entries, "ijk"[: tensor.ndim])])
        text = f"R(i) = A({','.join('ijk'[: tensor.ndim])})"
        assert_same(sl.evaluate(text, A=counted, format="s"), wanted, f"{text} of {tensor.format}")
    return "right"


def files(rng: np.random.Generator) -> str:
    """Written and read again, in any format that the file can hold."""
    kind = str(rng.choice((".tns", ".tns.gz", ".npz", ".mtx", ".mtx.gz")))
    shape = shape_of(rng, 2 if ".mtx" in kind else int(rng.integers(1, 4)))
    tensor, entries = draw_tensor(rng, shape)
    form = draw_format(rng, shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"far{kind}")
        sl.write(path, tensor)
        read = sl.read(path, format=form)
        assert read.shape == shape, f"{kind}: the shape {shape} became {read.shape}"
        assert_same(read, entries, f"{tensor.format} through {kind} to {form}")
        if kind == ".tns" and entries:
            lines = path.read_text().splitlines()[1:]
            path.write_text("".join(f"{line}\n" for line in lines))
            bare = sl.read(path, format=form)
            assert meaning(bare) == meaning(tensor), f"{tensor.format} through a bare {kind} to {form}"
            assert bare.shape == tuple(max(places) + 1 for places in zip(*entries, strict=True))
    return "right"


def schedules(rng: np.random.Generator) -> str:
    """Loops that are cut, fused and walked by positions."""
    shape = shape_of(rng, 2)
    tensor, entries = draw_tensor(rng, shape, str(rng.choice(("ss", "uq", "ss:1,0"))))
    steps = (
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3)", "pos(j,p,A(i,j))", "divide(i,i0,i1,5)", "divide(i,i0,i1,3) fuse(i1,j,f)",
        "divide(j,j0,j1,4)", "divide(i,i0,i1,2) fuse(i1,j,f) pos(f,p,A(i,j))", "fuse(i,j,f)", "fuse(i,j,f) divide(f,f0,f1,7)",
        "divide(i,i0,i1,8) fuse(i0,i1,f)", "fuse(i,j,f) pos(f,p,A(i,j)) parallelize(p,CPUThread,Atomics)",
        f"split(i,i0,i1,{2**31})" if shape[0] < 2**40 else "divide(i,i0,i1,4)",
    )  # fmt: skip
    step = steps[rng.integers(len(steps))]
    result = str(rng.choice(("s = A(i,j)", "s = A(i,j) * x(j)", "s = A(i,j) * B(i,j)")))
    operands = {"A": (tensor, entries, "ij")}
    if "x(" in result:
        operands["x"] = (*draw_tensor(rng, shape[1:], "s"), "j")
    if "B(" in result:
        operands["B"] = (*draw_tensor(rng, shape, "ss"), "ij")
    kernel = sl.program(result, {name: t.format for name, (t, _, _) in operands.items()}, step)
    made = kernel(**{name: t for name, (t, _, _) in operands.items()})
    wanted = contract("", [(found, variables) for _, found, variables in operands.values()]).get((), 0)
    assert made.item() == wanted, f"{result} with {step} on {shape}: {made.item()}, not {wanted}"
    return "right"


KINDS = (conversions, conversions, many_entries, products, products, products, sums, sums, methods, methods, files, schedules)
