"""The order of contractions: the search against all trees there are, and what becomes of well-known products."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.core.algebra import semiring
from sparseloom.core.errors import NotationError
from sparseloom.notation.printer import show
from sparseloom.notation.terms import close_over
from sparseloom.notation.text import declare, parse
from sparseloom.plan.contraction import Contraction, contract, contract_along, follow
from sparseloom.plan.network import Network, Part, Tree, bits, factors_of, set_of
from sparseloom.plan.problem import Problem, declared, pose
from sparseloom.plan.statistics import Statistics


def network(random: Random, count: int) -> Network:
    """Factors of one to three of six variables."""
    extents = tuple(random.choice((1, 2, 7, 40, 300, 2000)) for _ in range(6))
    parts = []
    for _ in range(count):
        density = random.choice((1.0, 1.0, 0.5, 0.02, 0.0003))
        parts.append(Part(set_of(random.sample(range(6), random.randint(1, 3))), density, density < 1, density < 1))
    spanned = 0
    for part in parts:
        spanned |= part.variables
    result = set_of([k for k in bits(spanned) if random.random() < 0.3])
    return Network(tuple(parts), extents, result, random.random() < 0.7, random.random() < 0.3)


def trees(found: Network, factors: tuple[int, ...]) -> Iterator[Tree]:
    """Every tree over some factors whose nests read factors alone, factors and one temporary, or two temporaries."""
    yield factors
    for size in range(1, len(factors)):
        for part in combinations(factors, size):
            others = tuple(k for k in factors if k not in part)
            if makes_something(found, part):
                for below in trees(found, part):
                    yield (*others, below)
                    if makes_something(found, others):
                        yield from ((below, beside) for beside in trees(found, others))


def makes_something(found: Network, factors: tuple[int, ...]) -> bool:
    return len(factors) > 1 or found.kept(set_of(factors)) != found.spanned[set_of(factors)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_search_finds_the_cheapest_tree(count: int, seed: int) -> None:
    random = Random(seed + count)
    for _ in range(60 if count < 4 else 12):
        found = network(random, count)
        chosen = found.cheapest()
        assert factors_of(chosen) == found.everything
        least = min(map(found.price, trees(found, tuple(range(count)))))
        assert found.price(chosen) == pytest.approx(least, rel=1e-12)


def test_many_factors_are_paired_and_each_is_used_once(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        found = network(random, random.randint(8, 11))
        chosen = found.cheapest()
        assert sorted(leaves(chosen)) == list(range(len(found.factors)))


def leaves(tree: int | Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in leaves(part)]


def test_the_search_depends_on_nothing_else() -> None:
    assert [network(Random(3), 6).cheapest() for _ in range(3)] == [network(Random(3), 6).cheapest()] * 3


def pose_it(text: str, ring: str | None = None, dtype: str | None = None, **operands: object) -> tuple[Problem, Statistics]:
    storages = {name: sl.asarray(value).storage for name, value in operands.items()}
    typed = declare(parse(text).assign, {name: declared(name, storage) for name, storage in storages.items()})
    closed = close_over(typed, None if ring is None else semiring(ring))
    wanted = None if dtype is None else np.dtype(dtype)
    return pose(closed, storages, 2**31 - 1, dtype=wanted), Statistics.of(storages)


def steps(text: str, ring: str | None = None, dtype: str | None = None, **operands: object) -> list[str]:
    return told(contract(*pose_it(text, ring, dtype, **operands)))


def told(made: Contraction) -> list[str]:
    """The steps as text, temporaries with their formats."""
    *before, last = made.steps
    return [*(f"{show(step.statement)}    {step.format}" for step in before), show(last.statement)]


A = sp.random_array((2000, 2000), density=0.02, format="csr", rng=np.random.default_rng(1))
x, narrow, wide = np.ones(2000), np.ones((2000, 16)), np.ones((2000, 64))


def test_a_chain_of_matrices_and_a_vector_goes_from_right_to_left() -> None:
    assert steps("y(i) = A(i,j) * A(j,k) * A(k,l) * x(l)", A=A, x=x) == [
        "t1(k) = sum(l, A(k,l) * x(l))    dense(1)",
        "t2(j) = sum(k, A(j,k) * t1(k))    dense(1)",
        "y(i) = sum(j, A(i,j) * t2(j))",
    ]


def test_a_layer_of_a_graph_network_goes_by_the_widths() -> None:
    assert steps("y(i,l) = A(i,j) * X(j,k) * W(k,l)", A=A, X=wide, W=np.ones((64, 16))) == [
        "t1(j,l) = sum(k, X(j,k) * W(k,l))    dense(2)", "y(i,l) = sum(j, A(i,j) * t1(j,l))",
    ]  # fmt: skip
    assert steps("y(i,l) = A(i,j) * X(j,k) * W(k,l)", A=A, X=narrow, W=np.ones((16, 64))) == [
        "t1(i,k) = sum(j, A(i,j) * X(j,k))    dense(2)", "y(i,l) = sum(k, t1(i,k) * W(k,l))",
    ]  # fmt: skip


def test_masked_attention_is_a_masked_product_and_another() -> None:
    assert steps("y(i,l) = M(i,j) * Q(i,k) * K(j,k) * V(j,l)", M=A, Q=wide, K=wide, V=wide) == [
        "t1(i,j) = sum(k, M(i,j) * Q(i,k) * K(j,k))    csr", "y(i,l) = sum(j, t1(i,j) * V(j,l))",
    ]  # fmt: skip


def test_what_is_best_in_one_nest_stays_there() -> None:
    cube = sl.random((100, 100, 100), 0.05, "csf", seed=1)
    factor = np.ones((100, 16))
    assert len(steps("C(i,j) = A(i,j) * X(i,k) * W(j,k)", A=A, X=wide, W=wide)) == 1
    assert len(steps("M(i,j) = B(i,k,l) * D(l,j) * C(k,j)", B=cube, C=factor, D=factor)) == 1
    assert len(steps("y = A(i,j) * A(j,k) * A(k,i)", A=A)) == 1
    assert len(steps("y(i) = A(i,j) * x(j)", A=A, x=x)) == 1
    assert len(steps("y(i) = A(i,j) * A(j,k) * x(k)", A=sp.random_array((50, 50), density=0.1, format="csr"), x=x[:50])) == 1


def test_a_sum_over_variables_of_one_factor_comes_early() -> None:
    assert steps("y = A(i,j) * A(j,k)", A=A) == ["t1(j) = sum(k, A(j,k))    dense(1)", "y = sum({i,j}, A(i,j) * t1(j))"]


def test_terms_are_cut_one_by_one_and_numbers_stay_with_the_result() -> None:
    assert steps("y(i) = x(i) - 2 * A(i,j) * A(j,k) * x(k)", A=A, x=x) == [
        "t1(j) = sum(k, A(j,k) * x(k))    dense(1)", "y(i) = x(i) - sum(j, 2 * A(i,j) * t1(j))",
    ]  # fmt: skip
    assert steps("t1(i) = A(i,j) * sum(k, A(j,k) * x(k))", A=A, x=x)[0] == "t1_1(j) = sum(k, A(j,k) * x(k))    dense(1)"


def test_a_sparse_result_keeps_its_pattern() -> None:
    """A dense temporary would have entries in empty rows; a vector that is sparse would be searched for every row."""
    assert len(steps("C(i,j) = A(i,j) * A(j,k) * x(k)", A=A, x=x)) == 1
    assert steps("C(i,j) = A(i,j) * F(j,k) * x(k)", A=A, F=np.ones((2000, 2000)), x=x)[0].endswith("dense(1)")
    B = sp.random_array((2000, 2000), density=0.002, format="csr", rng=np.random.default_rng(1))
    thin = sp.random_array((2000, 20), density=0.5, format="csr", rng=np.random.default_rng(1))
    assert steps("C(i,l) = A(i,j) * B(j,k) * D(k,l)", A=A, B=B, D=thin)[0].endswith("csr")


def test_what_does_not_distribute_or_annihilate_stays_in_one_nest() -> None:
    sevens = sl.full((2000, 2000), 7.0, format="csr")
    whole = A.astype(np.int64)
    assert len(steps("y(i) = A(i,j) * B(j,k) * x(k)", A=A, B=sevens, x=x)) == 1
    assert len(steps("y(i) = max({j,k}, A(i,j) * A(j,k) * x(k))", A=A, x=x)) == 1
    assert len(steps("y(i) = min({j,k}, A(i,j) + A(j,k) + x(k))", A=A, x=x)) == 1
    assert len(steps("y(i) = A(i,j) * A(j,k) * x(k)", A=A.astype(np.float32), x=x)) == 1  # A*A is computed in float32
    assert len(steps("y(i) = A(i,j) * A(j,k) * x(k)", ring="max_times", A=A, x=x)) == 1
    assert len(steps("y(i) = A(i,j) * A(j,k) * x(k)", ring="min_plus", A=whole, x=x.astype(np.int64))) == 1
    assert len(steps("y(i) += A(i,j) * A(j,k) * x(k)", A=A, x=x, y=x)) == 1  # what y held would be lost if it must be done again
    assert len(steps("y(i) += A(i,j) * A(j,k) * x(k)", A=whole, x=x.astype(np.int64), y=x.astype(np.int64))) == 2


def test_every_temporary_has_the_dtype_of_the_product() -> None:
    single = A.astype(np.float32)
    assert steps("y(i) = A(i,j) * x(k) * A(j,k)", A=single, x=x)[0] == "t1(j) = sum(k, x(k) * as_float64(A(j,k)))    dense(1)"
    made = contract(*pose_it("y(i) = A(i,j) * A(j,k) * x(k)", dtype="int64", A=A.astype(np.int8), x=x.astype(np.int8)))
    assert [step.statement.lhs.tensor.dtype for step in made.steps[:-1]] == [np.dtype(np.int64)]


def test_a_dense_temporary_of_sparse_factors_may_hide_what_is_absent() -> None:
    full = np.ones((2000, 2000))
    assert contract(*pose_it("y(i) = A(i,j) * A(j,k) * x(k)", A=A, x=x)).may_hide
    assert not contract(*pose_it("y(i) = A(i,j) * F(j,k) * x(k)", A=A, F=full, x=x)).may_hide
    assert not contract(*pose_it("y(i) = A(i,j) * A(j,k) * x(k)", A=A.astype(np.int32), x=x.astype(np.int32))).may_hide


def test_a_path_is_followed() -> None:
    assert follow(((0, 1), (0, 1)), 3) == ((0, 1), 2)
    assert follow(((1, 2), (0, 1)), 3) == (0, (1, 2))
    assert follow(((0, 1, 2),), 3) == (0, 1, 2)
    assert follow(((2, 0),), 3) == ((0, 2), 1)
    small = sp.random_array((5, 5), density=0.5, format="csr")
    asked = pose_it("y(i) = A(i,j) * B(j,k) * x(k)", A=small, B=small, x=np.ones(5))
    assert told(contract_along(*asked, ((0, 1), (0, 1)))) == [
        "t1(i,k) = sum(j, A(i,j) * B(j,k))    dense(2)", "y(i) = sum(k, t1(i,k) * x(k))",
    ]  # fmt: skip
    with pytest.raises(NotationError, match=r"^the path takes \(0, 3\), but the operands are then numbered from 0 to 2$"):
        contract_along(*asked, ((0, 3), (0, 1)))
