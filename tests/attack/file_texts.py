"""Text files that are valid or nearly so, and slow readers of them that share no code with Sparseloom."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Entries = dict[tuple[int, ...], complex | float | int]
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_FLOAT = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))")
FIELDS = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
DTYPES = ("bool", "int8", "int64", "uint8", "uint64", "float32", "float64")
NASTY = (
    b"0", b"-1", b"-0", b"+", b"-", b"1e400", b"-1e400", b"1e-400", b"nan", b"-inf", b"0x10", b"1_0", b"1.5", b"2.0", b"1e0", b".5", b"1.",
    b"+3", b"1,5", b"1-2", b"9" * 18, b"9" * 19, b"9" * 20, b"9" * 400, b"9" * 5000, b"0" * 50 + b"1",
    b"2147483647", b"2147483648", b"4294967297", b"9007199254740993",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"18446744073709551615", b"18446744073709551616",
    b"\xff", b"\xd9\xa3", b"--1", b"1e", b"1d5", b"True", b"", b"%", b"#", b"1#2", b"\x00", b"\x1c", b"\x0b", b"\x0c", b"\r", b"\n",
)  # fmt: skip


class Malformed(Exception):
    """What the slow readers raise."""


@dataclass(frozen=True)
class Expected:
    """What a file holds."""

    shape: tuple[int, ...]
    entries: Entries
    dtype: np.dtype[np.generic]


def draw_matrix(rng: np.random.Generator) -> bytes:
    """A Matrix Market file of a few lines."""
    layout, field, symmetry = "array", "pattern", "general"
    while not _is_legal(layout, field, symmetry):
        layout, field, symmetry = (str(rng.choice(list(kinds))) for kinds in (("coordinate", "coordinate", "array"), FIELDS, SYMMETRIES))
    rows, columns = (int(size) for size in rng.integers(0, 6, 2))
    columns = columns if symmetry == "general" else rows
    head = f"%%MatrixMarket matrix {layout} {field} {symmetry}"
    if layout == "array":
        skipped = int(symmetry == "skew-symmetric")
        count = rows * columns if symmetry == "general" else (rows - skipped) * (rows - skipped + 1) // 2
        return _joined(rng, [head, f"{rows} {columns}", *(_value(rng, field) for _ in range(max(count, 0)))], b"%")
    places = [(i, j) for i in range(1, rows + 1) for j in range(1, columns + 1)]
    if symmetry != "general":
        is_low = bool(rng.integers(2))
        places = [(i, j) for i, j in places if (i >= j) == is_low or i == j]
        places = [(i, j) for i, j in places if i != j] if symmetry == "skew-symmetric" else places
    chosen = [places[k] for k in rng.integers(0, len(places), int(rng.integers(0, 9)))] if places else []
    return _joined(rng, [head, f"{rows} {columns} {len(chosen)}", *(f"{i} {j} {_value(rng, field)}" for i, j in chosen)], b"%")


def _is_legal(layout: str, field: str, symmetry: str) -> bool:
    is_empty = field == "pattern" and (layout == "array" or symmetry == "skew-symmetric")
    return not is_empty and (symmetry != "hermitian" or field == "complex")


def draw_tensor(rng: np.random.Generator) -> bytes:
    """A FROSTT file of a few lines."""
    order = int(rng.integers(0, 5))
    shape, dtype = rng.integers(1, 6, order), str(rng.choice(DTYPES))
    style = str(rng.choice(["remark", "sizes", "bare"]))
    kind = {"bool": "truth", "float32": "real", "float64": "real"}.get(dtype, "unsigned-integer") if style == "remark" else "real"
    count = int(rng.integers(0, 9))
    lines = [" ".join([*(str(rng.integers(1, size + 1)) for size in shape), _value(rng, kind)]) for _ in range(count)]
    if style == "remark":
        lines.insert(0, "# sparseloom: shape" + "".join(f" {size}" for size in shape) + f" dtype {dtype}")
    if style == "sizes" and order:
        lines[:0] = [str(order), " ".join(map(str, shape))]
    return _joined(rng, lines, b"#")


def _value(rng: np.random.Generator, field: str) -> str:
    match field:
        case "pattern":
            return ""
        case "truth":
            return str(rng.integers(2))
        case "integer":
            return str(rng.integers(-9, 10))
        case "unsigned-integer":
            return str(rng.integers(0, 10))
        case "complex":
            return f"{rng.integers(-9, 10)} {rng.integers(-9, 10) / 4}"
    return str(rng.integers(-9, 10) / rng.choice([1, 4])) if rng.integers(2) else str(rng.integers(-9, 10))


def _joined(rng: np.random.Generator, lines: list[str], mark: bytes) -> bytes:
    """The lines, perhaps with comments, blanks and other line ends; the first must stay the first."""
    texts = [line.encode() for line in lines]
    for _ in range(int(rng.integers(0, 3))):
        extra = [b"", b"   ", mark, mark + b" 1 2 3", b" \t" + mark * 2][int(rng.integers(5))]
        texts.insert(int(rng.integers(1, len(texts) + 1)) if texts else 0, extra)
    end = b"\r\n" if rng.integers(4) == 0 else b"\n"
    text = end.join(texts) + (end if rng.integers(4) else b"")
    return text.replace(b" ", b"\t") if rng.integers(8) == 0 and not text.startswith(b"# s") else text


def mutate(rng: np.random.Generator, text: bytes) -> bytes:
    """Damage a text in one place."""
    place = int(rng.integers(len(text) + 1))
    lines = text.split(b"\n")
    line = int(rng.integers(len(lines)))
    match int(rng.integers(10)):
        case 0:
            return text[:place]
        case 1:
            return text[:place] + bytes([int(rng.integers(256))]) + text[place + 1 :]
        case 2:
            return text[:place] + text[place + int(rng.integers(1, 4)) :]
        case 3:
            return b"\n".join([*lines[: line + 1], *lines[line:]])
        case 4:
            return b"\n".join([*lines[:line], *lines[line + 1 :]])
        case 5:
            others = [b"\xef\xbb\xbf" + text, text + b"\x00", text.replace(b"\n", b"\r"), text + b"1 1 1 1\n", b"\n" + text, text * 2]
            return others[int(rng.integers(len(others)))]
        case _:
            words = list(re.finditer(rb"[^\s]+", text))
            if not words:
                return text
            word = words[int(rng.integers(len(words)))]
            return text[: word.start()] + NASTY[int(rng.integers(len(NASTY)))] + text[word.end() :]


def slow_matrix(text: bytes) -> Expected:
    """What a Matrix Market file holds, read word by word."""
    first, *rest = text.split(b"\n")
    head = first.lower().split()
    _need(len(head) == 5 and head[:2] == [b"%%matrixmarket", b"matrix"] and head[2] in (b"coordinate", b"array"))
    layout, field, symmetry = (word.decode("latin-1") for word in head[2:])
    _need(field in FIELDS and symmetry in SYMMETRIES and _is_legal(layout, field, symmetry))
    lines = [line.split() for line in rest if line.strip() and not line.lstrip(b" \t\r\x0b\x0c").startswith(b"%")]
    _need(bool(lines) and len(lines[0]) == (3 if layout == "coordinate" else 2))
    _need(all(re.fullmatch(rb"[0-9]{1,40}", word) for word in lines[0]))
    sizes = [int(word) for word in lines[0]]
    _need(max(sizes) < 2**63 and (symmetry == "general" or sizes[0] == sizes[1]))
    rows, columns = sizes[:2]
    is_integral = field.endswith("integer")
    order = 2 if layout == "coordinate" else 0
    table = _slow_table(lines[1:], order, FIELDS[field], is_integral)
    values = [value[0] if len(value) == 1 else complex(*value) if value else 1.0 for _, value in table]
    dtype = _integer_dtype(values, field) if is_integral else np.dtype(complex if field == "complex" else float)
    if layout == "array":
        places = [(i, j) for j in range(columns) for i in range(_first(symmetry, j), rows)] if rows * columns < 10**4 else None
        _need(places is not None and len(places) == len(values))
    else:
        _need(len(table) == sizes[2] and all(1 <= i <= rows and 1 <= j <= columns for (i, j), _ in table))
        places = [(i - 1, j - 1) for (i, j), _ in table]
    assert places is not None
    return Expected((rows, columns), _mirrored(places, values, symmetry, dtype), dtype)


def _first(symmetry: str, column: int) -> int:
    return {"general": 0, "skew-symmetric": column + 1}.get(symmetry, column)


def _mirrored(places: list[tuple[int, int]], values: list[complex | float | int], symmetry: str, dtype: np.dtype[np.generic]) -> Entries:
    """The entries with those of the other triangle."""
    pairs = list(zip(places, values, strict=True))
    if symmetry != "general":
        _need(not (any(i < j for i, j in places) and any(i > j for i, j in places)))
        _need(symmetry != "skew-symmetric" or all(value == 0 for (i, j), value in pairs if i == j))
        turns: dict[str, Callable[[complex], complex]] = {"skew-symmetric": lambda v: -v, "hermitian": lambda v: v.conjugate()}
        pairs += [((j, i), turns.get(symmetry, lambda v: v)(value)) for (i, j), value in pairs if i != j]
    return _summed(pairs, dtype)  # type: ignore[arg-type]


def _summed(pairs: list[tuple[tuple[int, ...], complex | float | int]], dtype: np.dtype[np.generic]) -> Entries:
    found: Entries = {}
    for place, value in pairs:
        total = found[place] + value if place in found else value
        if dtype.kind in "iu":
            lowest, range_ = int(np.iinfo(dtype).min), 1 << 8 * dtype.itemsize
            total = (int(total) - lowest) % range_ + lowest  # type: ignore[arg-type]
        found[place] = bool(total) if dtype.kind == "b" else total
    return found


def slow_tensor(text: bytes) -> Expected:
    """What a FROSTT file holds, read word by word."""
    first = text.split(b"\n")[0]
    remark = re.fullmatch(rb"# sparseloom: shape((?: [0-9]+)*) dtype (\w+)\s*", first)
    lines = [line.partition(b"#")[0].split() for line in text.split(b"\n")]
    lines = [line for line in lines if line]
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[np.generic] = np.dtype(float)
    if remark:
        _need(all(len(word) <= 40 for word in remark[1].split()) and remark[2].decode() in DTYPES)
        shape, dtype = tuple(map(int, remark[1].split())), np.dtype(remark[2].decode())
    elif len(lines) > 1 and _are_sizes(*lines[:2]):
        _need(all(len(word) <= 40 for word in lines[1]))
        shape, lines = tuple(map(int, lines[1])), lines[2:]
    _need(shape is None or max(shape, default=0) < 2**63)
    _need(shape is not None or bool(lines))
    order = len(lines[0]) - 1 if shape is None else len(shape)
    table = _slow_table(lines, order, 1, dtype.kind in "iub")
    _need(all(1 <= c <= (2**63 - 1 if shape is None else shape[mode]) for place, _ in table for mode, c in enumerate(place)))
    if shape is None:
        shape = tuple(max(place[mode] for place, _ in table) for mode in range(order))
    if dtype.kind in "iub":
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        _need(all(limits[0] <= value[0] <= limits[1] for _, value in table))
    pairs = [(tuple(c - 1 for c in place), value[0]) for place, value in table]
    return Expected(shape, _summed(pairs, dtype), dtype)  # type: ignore[arg-type]


def _are_sizes(first: list[bytes], second: list[bytes]) -> bool:
    """Whether two lines are an order and so many sizes."""
    is_order = len(first) == 1 and re.fullmatch(rb"[0-9]{1,2}", first[0]) is not None
    return is_order and len(second) == int(first[0]) and all(re.fullmatch(rb"[0-9]+", word) for word in second)


Table = list[tuple[tuple[int, ...], tuple[int | float, ...]]]


def _slow_table(lines: list[list[bytes]], order: int, words: int, is_integral: bool) -> Table:
    """Coordinates, which may be spelled as floats unless the values are integers, and values."""
    _need(all(len(line) == order + words for line in lines))
    number = _INTEGER if is_integral else _FLOAT
    _need(all(number.fullmatch(word) for line in lines for word in line))
    are_plain = all(_INTEGER.fullmatch(word) for line in lines for word in line[:order])
    table: Table = []
    for line in lines:
        place = tuple(_coordinate(word, are_plain) for word in line[:order])
        table.append((place, tuple(_long(word) if is_integral else float(word) for word in line[order:])))
    values = [value for _, row in table for value in row]
    _need(not is_integral or not values or (min(values) >= -(2**63) and max(values) < 2**63) or (min(values) >= 0 and max(values) < 2**64))
    return table


def _coordinate(word: bytes, is_plain: bool) -> int:
    if is_plain:
        return _long(word)
    value = float(word)
    _need(abs(value) < 2**53 and value == int(value))
    return int(value)


def _long(word: bytes) -> int:
    """An integer of any length, cut off where it is too large anyway."""
    return int(word) if len(word.lstrip(b"+-0")) < 40 and len(word) < 4000 else (10**40 if word[:1] != b"-" else -(10**40))


def _integer_dtype(values: list[complex | float | int], field: str) -> np.dtype[np.generic]:
    numbers = [int(value) for value in values]  # type: ignore[arg-type]
    _need(field == "integer" or min(numbers, default=0) >= 0)
    return np.dtype(np.uint64 if field != "integer" or max(numbers, default=0) >= 2**63 else np.int64)


def _need(is_so: bool) -> None:
    if not is_so:
        raise Malformed
