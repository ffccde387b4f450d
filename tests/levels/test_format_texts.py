"""How formats are written, and what the errors say."""

from __future__ import annotations

import pytest

from sparseloom.core.errors import FormatError
from sparseloom.formats.format import Format
from sparseloom.formats.levels import Bitmap, Compressed, Dense, Offset, Padded, Singleton
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, dia, ell, name_of
from sparseloom.formats.text import as_format, parse_format

MEANINGS = {
    "csr": csr, "CSR": csr, "ds": csr, "d,s": csr, " d s ": csr, "ds:0,1": csr,
    "csc": csc, "ds:1,0": csc, "d,s : 1, 0": csc,
    "ss": dcsr, "dcsr": dcsr, "dcsc": dcsc, "ss:1,0": dcsc,
    "coo": coo(2), "uq": coo(2), "coo(3)": coo(3), "uqq": coo(3), "coo(1)": csf(1),
    "csf": csf(3), "csf(2)": dcsr, "sss": csf(3),
    "": dense(0), "d": dense(1), "dense(3)": dense(3),
    "ell": ell, "dp": ell, "dia": dia, "do": dia, "do:1,0": Format((Dense(), Offset()), (1, 0)),
    "bsb": Format((Bitmap(), Compressed(), Bitmap()), (0, 1, 2)),
    "bcsr(2,3)": bcsr((2, 3)), "bcsr(4)": bcsr((4, 4)), "dsdd:0,1,0,1/2,3": bcsr((2, 3)),
    "sss:1,2,0": Format((Compressed(),) * 3, (1, 2, 0)),
    "dsdd:0,2,1,3": Format((Dense(), Compressed(), Dense(), Dense()), (0, 2, 1, 3)),
    "s~": Format((Compressed(ordered=False),), (0,)),
    "u~q~+": Format((Compressed(False, False), Singleton(False, False)), (0, 1)),
    "uq!q": Format((Compressed(True, False), Singleton(), Singleton()), (0, 1, 2)),
    "dq": Format((Dense(), Singleton()), (0, 1)),
    "pp": Format((Padded(), Padded()), (0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("text", MEANINGS)
def test_texts_mean_formats(text):
    assert parse_format(text) == MEANINGS[text]


def test_the_order_completes_a_family():
    assert [parse_format(name, 4) for name in ("dense", "coo", "csf")] == [dense(4), coo(4), csf(4)]
    assert as_format("coo", 3) == as_format(coo(3), 3) == coo(3)


def test_names():
    formats = (dense(2), csr, csc, dcsr, dcsc, coo(), coo(3), csf(), csf(4), bcsr((2, 3)), ell, dia, dense(0), csf(1))
    names = "dense(2) csr csc dcsr dcsc coo coo(3) csf csf(4) bcsr(2,3) ell dia dense(0) s".split()
    assert [name_of(format) for format in formats] == names
    assert str(parse_format("sd:1,0")) == "sd:1,0"
    assert f"{parse_format('dddd:0,1,0,1/2,2')}" == "dddd:0,1,0,1/2,2"


def test_chains_and_uniqueness():
    assert parse_format("uqqdsuq").chains == ((0, 2), (3, 3), (4, 4), (5, 6))
    assert all(parse_format(text).is_unique for text in ("", "dd", "uq", "uqq", "uqs"))
    assert not any(parse_format(text).is_unique for text in ("us", "uq+", "u~", "suq~+"))


LEVELS_TEXT = (
    "levels are d (dense), s (compressed), u (compressed, coordinates may repeat), q (singleton), p (padded), b (bitmap), o (offset); "
    "named formats are dense(n), csr, csc, dcsr, dcsc, coo(n), csf(n), bcsr(b,c), ell, dia"
)
MISPLACED = "an offset level stands below one dense level and nothing else: diagonals are counted from its rows; write do or do:1,0"
REFUSALS = {
    "dx": f"there is no level 'x' in the format 'dx'; {LEVELS_TEXT}",
    "~s": f"there is no level '~' in the format '~s'; {LEVELS_TEXT}",
    "d~": "'d~' in the format 'd~': ~ (unordered) may stand behind s, u and q, then + or ! behind q",
    "s+": "'s+' in the format 's+': ~ (unordered) may stand behind s, u and q, then + or ! behind q",
    "q": "a singleton level needs a level above it: its entries stand one below each parent",
    "ds:1": "'ds:1' has 2 levels but names 1 modes; name one mode per level",
    "ds:1,2": "the mode order (1, 2) must name each mode from 0 to 1 once",
    "ds:a,b": "'a' in the format 'ds:a,b' is not a whole number; write for example ds:1,0 or bcsr(2,3)",
    "dsdd:0,1,1,1/2,2": "the mode order (0, 1, 1, 1) must name each mode from 0 to 1 twice, for the block and the place in it",
    "bcsr": "'bcsr': bcsr needs its block size, one number or two; write bcsr(2,3)",
    "bcsr(0,2)": "block sizes must be one positive number per mode, not (0, 2)",
    "csr(2)": "'csr(2)': csr takes no numbers; named formats are dense(n), csr, csc, dcsr, dcsc, coo(n), csf(n), bcsr(b,c), ell, dia",
    **dict.fromkeys(("o", "so", "ddo", "dod", "dodd:0,1,0,1/2,2"), MISPLACED),
    "b~": "'b~' in the format 'b~': ~ (unordered) may stand behind s, u and q, then + or ! behind q",
    "dense": "'dense' does not say how many modes there are; write dense(2)",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_say_what_is_wrong(text):
    with pytest.raises(FormatError) as caught:
        parse_format(text)
    assert str(caught.value) == REFUSALS[text]


def test_a_format_of_another_order_is_refused():
    with pytest.raises(FormatError) as caught:
        parse_format("csr", 3)
    assert str(caught.value) == "the format 'csr' is for tensors of order 2, but this tensor has order 3"
    with pytest.raises(FormatError) as caught:
        as_format(csc, 1)
    assert str(caught.value) == "the format csc is for tensors of order 2, but this tensor has order 1"
    with pytest.raises(FormatError) as caught:
        as_format(3)  # type: ignore[arg-type]
    assert str(caught.value) == "a format is a sl.Format or a text such as 'csr' or 'ds:1,0', not 3"
    with pytest.raises(FormatError) as caught:
        dense(-1)
    assert str(caught.value) == "dense(-1): the order of a tensor is a whole number, at least 0"
