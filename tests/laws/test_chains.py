"""Products of several tensors, cut into statements by the planner or along a path: results are those of one nest, and of NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.cutting import cut_eagerly

import sparseloom as sl
from sparseloom.core.settings import settings
from sparseloom.formats.pack import pattern
from sparseloom.notation.nodes import TensorVar
from sparseloom.programs import binding, execution
from sparseloom.programs.chain import Chain
from sparseloom.programs.cuda import storages

CHUNKS = 6
CASES = 16  # for each chunk
FORMATS = {1: ("d", "s", "b"), 2: ("dd", "ds", "ss", "ds:1,0", "uq", "ell", "db"), 3: ("ddd", "sss", "dss", "sss:2,0,1")}
DTYPES = ("int64", "int64", "int8", "float64", "float32", "complex128", "bool")


@pytest.fixture
def eager() -> Iterator[None]:
    """Cut every product that may be cut, however small it is."""
    with cut_eagerly():
        yield


def operand(random: Random, shape: tuple[int, ...], dtype: str) -> sl.Tensor:
    """A tensor of small whole numbers in some format, with many zeros that are not stored."""
    rng = np.random.default_rng(random.getrandbits(32))
    low = 0 if dtype == "bool" else -3
    values = rng.integers(low, 4, shape).astype(dtype) * (rng.random(shape) < random.choice((0.15, 0.5, 0.9)))
    return sl.asarray(values.astype(dtype)).to(random.choice(FORMATS[len(shape)]))


def draw(random: Random) -> tuple[str, list[sl.Tensor]]:
    """Subscripts of three to six operands that hang together more often than not, and the operands."""
    labels = "ijklmn"[: random.randint(2, 6)]
    sizes = {label: random.choice((0, 1, 2, 3, 3, 4)) for label in labels}
    groups = []
    for k in range(random.randint(3, 6)):
        near = list({labels[k % len(labels)], labels[(k + 1) % len(labels)], random.choice(labels)})
        groups.append("".join(random.sample(near, random.randint(1, min(3, len(near))))))
    known = sorted(set("".join(groups)))
    output = "".join(random.sample(known, random.randint(0, min(3, len(known)))))
    dtype = random.choice(DTYPES)
    return f"{','.join(groups)}->{output}", [operand(random, tuple(sizes[label] for label in group), dtype) for group in groups]


def dense(tensor: sl.Tensor) -> np.ndarray:
    return tensor.to_numpy()


def expected(subscripts: str, operands: list[sl.Tensor]) -> np.ndarray:
    return np.einsum(subscripts, *map(dense, operands), dtype=operands[0].dtype)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.usefixtures("eager")
def test_random_chains_are_those_of_numpy(chunk: int, seed: int) -> None:
    random = Random(seed * 1000 + chunk)
    for case in range(CASES):
        subscripts, operands = draw(random)
        target = "c" if case % 8 == 0 else "interpret"
        want = expected(subscripts, operands)
        one = sl.einsum(subscripts, *operands, target=target, optimize=False)
        for optimize in (True, path(random, len(operands))):
            made = sl.einsum(subscripts, *operands, target=target, optimize=optimize)
            where = f"{subscripts} {[str(t.format) for t in operands]} {target} {optimize}"
            assert made.dtype == one.dtype and made.format == one.format, where
            np.testing.assert_array_equal(made.to_numpy(), want, where)
            np.testing.assert_array_equal(pattern(made.storage), pattern(one.storage), where)


def path(random: Random, count: int) -> list[object]:
    """Pairs of operands in any order."""
    steps = [tuple(random.sample(range(left), 2)) for left in range(count, 2, -1)]
    return ["einsum_path", *steps[: random.randint(1, len(steps))]]


@pytest.mark.usefixtures("eager")
def test_most_random_chains_are_cut(seed: int) -> None:
    random = Random(seed)
    plans = [sl.plan(*((case := draw(random))[0], *case[1])) for _ in range(60)]
    assert sum("t1" in plan for plan in plans) > 30


@pytest.mark.usefixtures("eager")
def test_random_plans_are_read_again_and_make_the_same_code(seed: int) -> None:
    random = Random(seed + 1)
    for _ in range(25):
        subscripts, operands = draw(random)
        planned = sl.plan(subscripts, *operands)
        again = sl.program(planned)
        assert again.plan_for(dict(zip(names(operands), operands, strict=True))) == planned
        first = sl.program(planned)
        first.plan_for(dict(zip(names(operands), operands, strict=True)))
        assert first.show("loops") == again.show("loops")


def names(operands: list[sl.Tensor]) -> list[str]:
    return [f"op{k}" for k in range(len(operands))]


RINGS = {
    "min_plus": (np.minimum, np.add, np.inf), "max_plus": (np.maximum, np.add, -np.inf), "max_min": (np.maximum, np.minimum, -np.inf),
    "min_max": (np.minimum, np.maximum, np.inf), "max_times": (np.maximum, np.multiply, -np.inf),
}  # fmt: skip


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.usefixtures("eager")
def test_chains_under_semirings(ring: str, rng: np.random.Generator) -> None:
    add, multiply, zero = RINGS[ring]
    stored = rng.random((4, 4)) < 0.4
    matrix = sp.csr_array((rng.integers(-3, 4, stored.sum()).astype(float), np.nonzero(stored)), shape=(4, 4))
    filled = np.where(stored, matrix.toarray(), zero)
    x = rng.integers(-3, 4, 4).astype(float)
    terms = np.zeros((4, 4, 4))
    for i, j, k in np.ndindex(4, 4, 4):
        absent = not (stored[i, j] and stored[j, k])
        terms[i, j, k] = zero if absent else multiply(multiply(filled[i, j], filled[j, k]), x[k])
    want = add.reduce(terms, axis=(1, 2), initial=zero)
    for target in ("interpret", "c"):
        made = sl.evaluate("y(i) = A(i,j) * A(j,k) * x(k)", A=matrix, x=x, semiring=ring, target=target)
        np.testing.assert_array_equal(made.to_numpy(), want)
    planned = sl.plan("y(i) = A(i,j) * A(j,k) * x(k)", A=matrix, x=x, semiring=ring)
    assert ("t1(j) = A(j,k) * x(k)" in planned) == (ring != "max_times")
    again = sl.program(planned, semiring=ring)
    np.testing.assert_array_equal(again(matrix, x).to_numpy(), want)
    assert again.plan == planned


@pytest.mark.usefixtures("eager")
def test_truth_values_under_a_semiring(rng: np.random.Generator) -> None:
    matrix = rng.random((5, 5)) < 0.3
    reached = (matrix.astype(int) @ matrix @ matrix) > 0
    made = sl.evaluate("R(i,l) = A(i,j) * A(j,k) * A(k,l)", A=sp.csr_array(matrix), semiring="or_and")
    np.testing.assert_array_equal(made.to_numpy(), reached)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("target", ["interpret", "c"])
def test_absent_entries_annihilate_what_is_no_number(bad: float, target: str) -> None:
    """Row 2 of A is empty, so that nothing there is read, though a dense temporary has a zero for it."""
    A = sp.csr_array((np.array([1.0, 2.0]), (np.array([0, 1]), np.array([1, 0]))), shape=(3, 3))
    B = sp.csr_array((np.array([bad, 1.0]), (np.array([0, 1]), np.array([2, 0]))), shape=(3, 3))
    x = np.array([1.0, 10.0, bad])
    text = "y(i) = B(i,j) * A(j,k) * x(k)"
    assert "t1" in sl.plan(text, A=A, B=B, x=x)
    made = sl.evaluate(text, A=A, B=B, x=x, target=target)
    np.testing.assert_array_equal(made.to_numpy(), [0, 10.0, 0])
    kernel = sl.program(text, formats={"A": "csr", "B": "csr"}, target=target)
    np.testing.assert_array_equal(kernel.bind(B, A, x)().to_numpy(), [0, 10.0, 0])
    out = sl.zeros(3)
    np.testing.assert_array_equal(kernel(B, A, x, out=out).to_numpy(), [0, 10.0, 0])


@pytest.mark.usefixtures("eager")
def test_a_sparse_result_stores_what_one_nest_stores(rng: np.random.Generator) -> None:
    A, B, C = (sp.random_array((6, 6), density=0.25, format="csr", rng=rng) for _ in range(3))
    text = "D(i,l) = A(i,j) * B(j,k) * C(k,l)"
    made, one = (sl.evaluate(text, A=A, B=B, C=C, optimize=optimize) for optimize in (True, False))
    assert str(made.format) == str(one.format) == "csr"
    np.testing.assert_array_equal(pattern(made.storage), pattern(one.storage))


@pytest.mark.usefixtures("eager")
def test_integers_wrap_as_they_do_in_one_nest(rng: np.random.Generator) -> None:
    A = sp.csr_array(rng.integers(-128, 128, (9, 9)).astype(np.int8))
    x = rng.integers(-128, 128, 9).astype(np.int8)
    text = "y(i) = A(i,j) * A(j,k) * A(k,l) * x(l)"
    assert "t2" in sl.plan(text, A=A, x=x)
    made, one = (sl.evaluate(text, A=A, x=x, optimize=optimize) for optimize in (True, False))
    assert made.dtype == np.int8
    np.testing.assert_array_equal(made.to_numpy(), one.to_numpy())
    wide = sl.evaluate(text, A=A, x=x, dtype="int64").to_numpy()
    np.testing.assert_array_equal(wide, A.toarray().astype(int) @ (A.toarray().astype(int) @ (A.toarray().astype(int) @ x.astype(int))))


@pytest.mark.usefixtures("eager")
def test_a_temporary_whose_positions_outgrow_their_width(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(settings, "int32_limit", 200)
    A = sl.asarray(sp.random_array((40, 40), density=0.1, format="csr", rng=rng))
    text = "t: csr\nt(i,k) = A(i,j) * A(j,k)\ny(i,l) = t(i,k) * X(k,l)"
    X = np.ones((40, 2))
    kernel = sl.program(text, formats={"A": "csr"})
    want = A.to_numpy() @ A.to_numpy() @ X
    np.testing.assert_allclose(kernel(A, X).to_numpy(), want)
    narrow = kernel._last
    assert isinstance(narrow, Chain)
    assert [link.problem.assign.lhs.tensor.index_dtype for link in narrow.widened().links] == [np.dtype(np.int64), np.dtype(np.int64)]
    assert narrow.current is not narrow
    np.testing.assert_allclose(kernel(A, X).to_numpy(), want)
    np.testing.assert_allclose(kernel.bind(A, X)().to_numpy(), want)
    assert "int64_t *restrict t2_pos" in kernel.source


@pytest.mark.usefixtures("eager")
def test_one_nest_stands_in_where_there_is_no_room_for_a_temporary(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    A, x = sp.random_array((30, 30), density=0.2, format="csr", rng=rng), np.ones(30)
    kernel = sl.program("y(i) = A(i,j) * A(j,k) * x(k)", {"A": "csr"})
    assert "t1" in kernel.plan_for(A, x)

    def allocate(tensor: TensorVar, shape: tuple[int, ...]) -> np.ndarray:
        if tensor.name == "t1":
            raise sl.FormatError("no room")
        return binding.allocate(tensor, shape)

    monkeypatch.setattr(storages, "allocate", allocate)  # where both the chain and its steps ask for room
    for made in (kernel(A, x), kernel.bind(A, x)(), sl.evaluate("y(i) = A(i,j) * A(j,k) * x(k)", A=A, x=x)):
        np.testing.assert_allclose(made.to_numpy(), A @ (A @ x))


SAMPLED = "t: csr\nt(i,j) = S(i,j) * C(i,k) * D(j,k)\nu: csr\nu(i,j) = 2 * t(i,j)\nY(i,l) = u(i,j) * D(j,l)"


def test_a_temporary_with_the_structure_of_an_operand_is_bound_once(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    S, C, D = sp.random_array((30, 20), density=0.2, format="csr", rng=rng), rng.random((30, 5)), rng.random((20, 5))
    bound = sl.program(SAMPLED, {"S": "csr"}).bind(S, C, D)
    np.testing.assert_allclose(bound().to_numpy(), 2 * (S.toarray() * (C @ D.T)) @ D)
    monkeypatch.setattr(execution.Specialization, "bind", None)
    S.data[:], C[:] = rng.random(S.nnz), rng.random(C.shape)
    np.testing.assert_allclose(bound().to_numpy(), 2 * (S.toarray() * (C @ D.T)) @ D)
    S.indices[:] = np.concatenate([np.sort(rng.choice(20, n, replace=False)) for n in np.diff(S.indptr)])
    np.testing.assert_allclose(bound().to_numpy(), 2 * (S.toarray() * (C @ D.T)) @ D)


def test_a_temporary_that_is_converted_is_bound_anew(rng: np.random.Generator) -> None:
    S, C, D = sp.random_array((30, 20), density=0.2, format="csr", rng=rng), rng.random((30, 5)), rng.random((20, 5))
    text = "t: csr\nt(i,j) = S(i,j) * C(i,k) * D(j,k)\nY(j,i) = t(i,j) * R(j,i)"
    R = sp.random_array((20, 30), density=0.4, format="csr", rng=rng)
    bound = sl.program(text, {"S": "csr", "R": "csr", "Y": "dd"}).bind(S, C, D, R)
    for _ in range(2):
        np.testing.assert_allclose(bound().to_numpy(), (S.toarray() * (C @ D.T)).T * R.toarray())
        S.data[:] = rng.random(S.nnz)
        S.indices[:] = np.concatenate([np.sort(rng.choice(20, n, replace=False)) for n in np.diff(S.indptr)])


def test_a_tensor_is_assigned_in_steps() -> None:
    A = sl.asarray(sp.random_array((300, 300), density=0.1, format="csr", rng=np.random.default_rng(1)), name="A")
    x, y = sl.asarray(np.ones(300), name="x"), sl.zeros(300, name="y")
    i, j, k = sl.indices("i j k")
    y[i] = A[i, j] * A[j, k] * x[k]
    np.testing.assert_allclose(y.to_numpy(), A.to_numpy() @ (A.to_numpy() @ np.ones(300)))
