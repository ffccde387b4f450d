"""Files that try to hurt: what is no plain file, what unpacks to more than it says, and names and disks that fail."""

from __future__ import annotations

import gzip
import io
import os
import resource
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tensor.peaks import peak_of_refusal

from sparseloom.cli.main import main
from sparseloom.core.dtypes import value_dtype
from sparseloom.core.errors import DTypeError, SparseloomError, StorageError
from sparseloom.tensor import full, random, read, write
from sparseloom.tensor.io import source

HEAD = "%%MatrixMarket matrix coordinate real general\n"
SUFFIXES = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npz", ".npy")
MEBIBYTE = 1 << 20


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a socket": make_socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"a{suffix}"
    SPECIAL[kind](path)
    for verb, act in (("read", lambda: read(path)), ("write", lambda: write(path, np.eye(2)))):
        with pytest.raises(StorageError) as caught:
            act()
        assert str(caught.value) == f"cannot {verb} {path}: it is {kind}, not a plain file; give the name of a file"
    assert os.listdir(tmp_path) == [path.name]


def test_a_pipe_that_takes_the_place_of_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the first look and the opening another may stand there; neither may wait."""
    path = tmp_path / "a.mtx"
    os.mkfifo(path)
    plain = os.stat(__file__)
    monkeypatch.setattr(source, "_status", lambda path, verb: plain)
    with pytest.raises(StorageError, match="it is a pipe"):
        read(path)


def test_links_in_a_circle_and_names_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.symlink_to(path)
    for verb, act in (("read", read), ("write", lambda name: write(name, np.eye(2)))):
        with pytest.raises(StorageError, match=f"cannot {verb} .*: its symbolic links lead in a circle; name the file itself"):
            act(path)
        for name in ("a\0.mtx", "\ud800.mtx"):
            with pytest.raises(StorageError, match=f"cannot {verb} .*: no file can have this name"):
                act(name)
        for strange in (5, None, b"a.mtx", io.BytesIO()):
            with pytest.raises(StorageError, match=r"a file is given by its name, a str or os\.PathLike, not by"):
                act(strange)  # type: ignore[arg-type]


def test_links_to_files_are_followed(tmp_path: Path) -> None:
    (tmp_path / "b.mtx").symlink_to("a.mtx")
    write(tmp_path / "b.mtx", np.eye(2))
    assert (tmp_path / "b.mtx").is_symlink() and (tmp_path / "a.mtx").is_file()
    np.testing.assert_array_equal(read(tmp_path / "b.mtx").to_numpy(), np.eye(2))


@pytest.mark.parametrize(
    ("suffix", "head", "unit", "expected"),
    [
        (".mtx.gz", HEAD + "3 3 5\n", "1 1 1\n", "line 8: 5 entries are declared, but more follow"),
        (".mtx.gz", HEAD.replace("coordinate", "array") + "3 3\n", "1\n", "line 12: 9 values are declared, but more follow"),
        (".mtx.gz", HEAD, "% a comment\n", "the file ends before its size line"),
        (".mtx.gz", HEAD, "%% 100% 50%\n", "the file ends before its size line"),
        (".mtx.gz", HEAD + "3 3 1\n", "        \n", "1 entries are declared, but the file ends after 0"),
        (".mtx.gz", HEAD + "3 3 1\n", "1", "line 3: a line is longer than 1 MiB"),
        (".mtx.gz", "", "%", "line 1: a line is longer than 1 MiB"),
        (".tns.gz", "1 1 1\n", f" # {'1 ' * 30}\n", ""),
        (".tns.gz", "", " ", "line 1: a line is longer than 1 MiB"),
    ],
    ids=range(9),
)
def test_a_text_that_unpacks_to_much_takes_little(tmp_path: Path, suffix: str, head: str, unit: str, expected: str) -> None:
    path = tmp_path / f"bomb{suffix}"
    with gzip.open(path, "wb", 1) as file:
        file.write(head.encode())
        for _ in range(32):
            file.write(unit.encode() * (MEBIBYTE // len(unit)))
    assert peak_of_refusal(path, expected) < 24 * MEBIBYTE


def test_reading_takes_little_more_than_what_is_read(tmp_path: Path) -> None:
    """300,000 entries of 16 bytes in 20 MB of text: the text was held whole, and several times."""
    count = 300_000
    lines = "".join(f"{k % 1000 + 1} {k // 1000 + 1} {k}.{'0' * 50}5\n" for k in range(count))
    (tmp_path / "a.mtx").write_text(f"{HEAD}1000 1000 {count}\n{lines}")
    tracemalloc.start()
    tensor = read(tmp_path / "a.mtx")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tensor.nnz == count
    assert most < 24 * MEBIBYTE


def test_blocks_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of a piece, the tensor and the lines of errors are the same."""
    text = HEAD + "% c\n4 5 6\n1 1 0.5\n% c\n\n4 5 -2\n2 2 7\n2 2 1e1\n   % c\n3 1 3\r\n1 5 1.25"
    expected = np.zeros((4, 5))
    for i, j, value in ((0, 0, 0.5), (3, 4, -2), (1, 1, 17), (2, 0, 3), (0, 4, 1.25)):
        expected[i, j] += value
    for size in range(1, 40):
        for module in ("source", "lines"):
            monkeypatch.setattr(f"sparseloom.tensor.io.{module}.PIECE", size)
        for suffix, pack in ((".mtx", bytes), (".mtx.gz", gzip.compress)):
            path = tmp_path / f"a{suffix}"
            path.write_bytes(pack(text.encode()))
            np.testing.assert_array_equal(read(path).to_numpy(), expected)
            path.write_bytes(pack(text.replace("3 1 3", "3 9 3").encode()))
            with pytest.raises(StorageError, match="line 11: the column 9 is outside 1 to 5\n    3 9 3"):
                read(path)
        (tmp_path / "a.tns").write_text("2 # order\n\n# sizes\n3 3\n1 1 5\n\n3 2 0.5 # half\n")
        assert (read(tmp_path / "a.tns").shape, read(tmp_path / "a.tns").nnz) == ((3, 3), 2)


def test_blocks_of_signs_and_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds of a whole file is found out across blocks."""
    monkeypatch.setattr("sparseloom.tensor.io.lines.PIECE", 4)
    path = tmp_path / "a.mtx"
    for field, symmetry, entries, expected in (
        ("integer", "general", "1 1 -1\n1 2 3\n1 3 18446744073709551615\n", "line 3: the integers of this file are too large or too small"),
        ("integer", "general", "1 3 18446744073709551615\n1 1 1\n1 2 -3\n", "line 5: the integers of this file are too large or too small"),
        ("real", "symmetric", "2 1 5\n3 1 5\n1 2 5\n", "line 5: a symmetric file stores one triangle"),
        ("real", "skew-symmetric", "2 1 5\n3 1 5\n2 2 5\n", "line 5: the diagonal of a skew-symmetric matrix is zero"),
        ("unsigned-integer", "general", "2 1 5\n3 1 5\n2 2 -5\n", "line 5: the value -5 is negative, but the header says unsigned-integer"),
    ):
        path.write_text(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n3 3 3\n{entries}")
        with pytest.raises(StorageError, match=expected):
            read(path)
    path.write_text("%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 1 5\n1 3 18446744073709551615\n")
    assert read(path).to_numpy()[0].tolist() == [5, 0, 2**64 - 1]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.mtx", HEAD + "3 3 1\n1 1 -", "line 3: '-' is not a number"),
        ("a.mtx", HEAD.replace("real", "integer") + "3 3 1\n1 1 +\n", "line 3: '+' is not an integer"),
        ("a.mtx", HEAD + f"{'9' * 5000} 3 1\n", "line 2: a size does not fit in 64 bits"),
        ("a.mtx", HEAD.replace("real", "integer") + f"3 3 1\n1 1 {'9' * 5000}\n", "line 3: an integer is too large for 64 bits"),
        ("a.mtx", HEAD + f"3 3 1\n1 1 {'x' * 5000}\n", f"line 3: '{'x' * 77}...' is not a number"),
        ("a.mtx", HEAD + "3 3 1\n1 1 5\n\0\n", "line 4: expected 3 numbers, found 1"),
        ("a.mtx", HEAD.replace("coordinate", "array") + "0 1000000000000000000\n", "there is no array of the shape"),
        ("a.tns", "1 1 1 5\n" + "1 " * 259 + "5\n", "line 2: expected 4 numbers, found 260"),
        ("a.tns", "2\n3 99999999999999999999\n1 1 5\n", "line 2: a size does not fit in 64 bits"),
        ("a.tns", f"# sparseloom: shape {'9' * 5000} dtype int8\n", "line 1: a size does not fit in 64 bits"),
        ("a.tns", "# sparseloom: shape 3 dtype int8\n1 300\n", "line 2: the value 300 does not fit into int8"),
        ("a.tns", "# sparseloom: shape 3 dtype bool\n1 2\n", "line 2: the value 2 does not fit into bool"),
        ("a.tns", "# sparseloom: shape 3 dtype f", "line 1: 'f' is not a value type; there are bool"),
        ("a.tns", "# sparseloom: shape 3 dtype 1_0\n", "line 1: '1_0' is not a value type; there are bool"),
    ],
    ids=range(14),
)
def test_texts_that_were_accepted_or_raised_something_else(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(StorageError) as caught:
        read(tmp_path / name)
    assert expected in str(caught.value)


def test_coordinates_are_exact_beside_values_that_are_not_integers(tmp_path: Path) -> None:
    largest = 2**63 - 1
    (tmp_path / "a.tns").write_text(f"2 {largest} 0.5\n1 9007199254740993 1e-3\n")
    tensor = read(tmp_path / "a.tns")
    assert tensor.shape == (2, largest)
    assert tensor.arrays["crd1"].tolist() == [9007199254740992, largest - 1]


@pytest.mark.parametrize("sizes", ["1000000000000000000 3 1", "200000000000 3 1"])
def test_sizes_that_no_memory_holds_are_refused(tmp_path: Path, sizes: str) -> None:
    (tmp_path / "a.mtx").write_text(f"{HEAD}{sizes}\n1 1 1\n")
    with pytest.raises(StorageError, match=r"GB as csr, more than half of the .* GB of memory that are free\n  help: ask for"):
        read(tmp_path / "a.mtx")


def test_gzip_members_and_capitals(tmp_path: Path) -> None:
    text = f"{HEAD}3 3 1\n2 2 5\n".encode()
    path = tmp_path / "A.MTX.GZ"
    path.write_bytes(b"".join(gzip.compress(bytes([byte])) for byte in text) + gzip.compress(b"") + bytes(70_000))
    assert read(path).to_numpy()[1, 1] == 5
    path.write_bytes(gzip.compress(text) + b"x")
    with pytest.raises(StorageError, match="the gzip data are damaged"):
        read(path)
    write(path, np.eye(2))
    assert path.read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"precious")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write(path, random((50, 40), 0.3, "csr", seed=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == [path.name]


def test_files_keep_their_permissions_and_may_have_long_names(tmp_path: Path) -> None:
    path = tmp_path / f"{'x' * 250}.npy"
    write(path, np.eye(2))
    path.chmod(0o600)
    write(path, np.eye(3))
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == [path.name]
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "none" / "a.npy", np.eye(2))
    assert caught.value.filename == str(tmp_path / "none" / "a.npy")


def test_the_command_line_refuses_pipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe, out = tmp_path / "a.mtx", tmp_path / "b.mtx"
    os.mkfifo(pipe)
    write(out, full((2, 2), 1.0))
    for arguments in (
        ["convert", str(pipe), str(out)],
        ["convert", str(out), str(pipe)],
        ["run", "y(i) = A(i,j) * x(j)", "-i", f"A={pipe}"],
        ["compile", "y(i) = x(i)", "-o", str(pipe)],
    ):
        assert main(arguments) == 2
        assert "it is a pipe, not a plain file" in capsys.readouterr().err


def test_memory_that_is_not_there_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(f"{HEAD}3 3 1\n1 1 1\n")
    monkeypatch.setattr("sparseloom.tensor.io.room._UNASKED", 0)
    monkeypatch.setattr("sparseloom.tensor.io.room.free_memory", lambda: 8)
    with pytest.raises(StorageError, match=r"its entries take more than .* GB, and only .* GB of memory are left"):
        read(path)

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.undo()
    monkeypatch.setattr("sparseloom.tensor.io.mtx.store", fail)
    with pytest.raises(SparseloomError, match="there is not enough memory for what it holds"):
        read(path)


@pytest.mark.parametrize("text", ["1_0", "f8,(", ",", "no such"])
def test_text_that_is_no_dtype(text: str) -> None:
    with pytest.raises(DTypeError, match="is not a value type; there are bool"):
        value_dtype(text)
