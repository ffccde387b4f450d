"""Random statements on random operands: the dense oracle, the loop interpreter and the compiled kernel must agree."""

from __future__ import annotations

from itertools import islice

import pytest
from fuzz.drawing import Case, cases, draw
from fuzz.reproducer import report_statements
from fuzz.runner import Tally, attempt, compare, prepare_whole
from fuzz.shrink import shrink
from fuzz.stretched import compare_stretched, stretched_cases
from fuzz.tally import PROPERTY, packed

CHUNKS = 30
NARROW_CHUNKS = 6
FAR_CHUNKS = 6


def compare_share(stream: int, seed: int, share: int, record_property: object, large: bool = False) -> None:
    tally = compare(cases(seed, stream, large), share)
    record_property(PROPERTY, packed(tally))  # type: ignore[operator]
    assert not tally.failures, report_statements(tally.failures, attempt)
    assert tally.compared >= share


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_all_oracles_agree(chunk: int, seed: int, case_count: int, record_property: object) -> None:
    compare_share(chunk, seed, -(-case_count // CHUNKS), record_property)


@pytest.mark.parametrize("chunk", range(NARROW_CHUNKS))
def test_all_oracles_agree_where_int32_ends_at_127(chunk: int, seed: int, case_count: int, record_property: object) -> None:
    compare_share(CHUNKS + chunk, seed, -(-max(case_count // 6, 300) // NARROW_CHUNKS), record_property, large=True)


@pytest.mark.parametrize("chunk", range(FAR_CHUNKS))
def test_all_oracles_agree_on_modes_longer_than_32_bits_count(chunk: int, seed: int, case_count: int, record_property: object) -> None:
    share = -(-case_count // (20 * FAR_CHUNKS))
    tally = compare_stretched(stretched_cases(seed, chunk), share)
    record_property(PROPERTY, packed(tally))  # type: ignore[operator]
    assert not tally.failures, "\n\n".join(f"{case}\n{problem}" for case, problem in tally.failures)
    assert tally.compared >= share


def test_nearly_all_valid_statements_are_accepted(seed: int) -> None:
    """Refusals must be rare: sparse results that need a workspace, which are drawn now and then."""
    tally = Tally()
    for case in islice(cases(seed, 1000), 360):
        if prepare_whole(case, tally) is not None:
            tally.compared += 1
    assert tally.accepted >= 0.95, tally.refused


def test_a_case_follows_from_its_numbers_alone() -> None:
    assert str(draw(1, 2)) == str(draw(1, 2))
    assert str(draw(1, 2)) != str(draw(1, 3))


def test_shrinking_keeps_what_fails() -> None:
    """A case counts as failing here while its statement still divides."""

    def divides(case: Case) -> bool:
        return "/" in case.text

    large = next(case for case in cases(3, 0) if divides(case) and len(case.specs) > 3)
    small = shrink(large, divides)
    assert divides(small)
    assert len(small.text) < len(large.text)
    assert len(small.specs) <= 2
