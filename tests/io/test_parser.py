"""The parser in C: every decimal is the nearest double, and what is not plain is left to the careful reader."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from sparseloom.core.errors import StorageError
from sparseloom.io import read, table
from sparseloom.io.parser import parse_rows

# Ties, limits, subnormal numbers, more digits than 64 bits hold.
HARD = (
    "-0 0.0 +5 .5 5. 1e-400 1e400 4.9e-324 2.2250738585072014e-308 2.2250738585072011e-308 1.7976931348623157e308 9007199254740993 "
    "9007199254740992.5 1e22 1e23 0e99999 8.5e-15 123456789012345678901234567890 0.1000000000000000055511151231257827 1448997445238699"
).split()


def drawn(rng: random.Random) -> str:
    """A decimal as someone may write it."""
    bits = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
    digits = "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 40)))
    return rng.choice(
        [
            repr(bits) if np.isfinite(bits) else "1",
            repr(rng.random()),
            f"{rng.gauss(0, 1e3):.20e}",
            f"{rng.uniform(-1e4, 1e4):.3f}",
            f"{digits}.{digits[::2]}",
            f"{rng.randrange(10 ** rng.randrange(1, 19))}e{rng.randrange(-330, 300)}",
        ]
    )


def test_every_decimal_is_the_nearest_double(rng: np.random.Generator, case_count: int) -> None:
    source = random.Random(int(rng.integers(2**32)))
    words = HARD + [drawn(source) for _ in range(20 * case_count)]
    found = parse_rows("".join(f"1 {word}\n" for word in words).encode(), 1, (1,), 1, False)
    assert found is not None
    expected = np.array([float(word) for word in words])
    wrong = np.flatnonzero(found[1][:, 0].view(np.uint64) != expected.view(np.uint64))
    assert not wrong.size, [words[k] for k in wrong[:5]]


def test_what_is_not_plain_is_left_alone() -> None:
    for text in ("1 2 3", "1", "1 x", "8 1", "0 1", "1 1e", "1 .", "1 1_0", "1 inf", "1 0x1", "-1 1", "1 1-2", "1\v1", "1.0 1"):
        assert parse_rows(f"1 1\n{text}\n".encode(), 1, (7,), 1, False) is None


def test_integers_keep_64_bits_and_no_more() -> None:
    found = parse_rows(b"  1 -999999999999999999 \r\n\n2 +7", 1, None, 1, True)
    assert found is not None and found[1][:, 0].tolist() == [-999999999999999999, 7] and found[0].tolist() == [[0, 1]]
    assert parse_rows(b"1 9223372036854775808\n", 1, None, 1, True) is None


def test_long_files_are_parsed_in_blocks_and_the_line_of_a_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "WORTH", 1)
    rows = [f"{k % 50 + 1} {k // 50 + 1} {k / 8}" for k in range(20_000)]
    path = tmp_path / "a.mtx"
    head = f"%%MatrixMarket matrix coordinate real general\n50 400 {len(rows)}\n"
    path.write_text(head + "\n".join(rows))
    expected = (np.arange(20_000) / 8).reshape(400, 50).T
    np.testing.assert_array_equal(read(path).to_numpy(), expected)
    rows[10_000] = "3 401 1"
    path.write_text(head + "\n".join(rows))
    with pytest.raises(StorageError, match=r"line 10003: the column 401 is outside 1 to 400"):
        read(path)
    path.write_text(head + "\n".join(rows[:10_000]))
    with pytest.raises(StorageError, match=r"line 10002: 20000 entries are declared, but the file ends after 10000"):
        read(path)
