"""The command ``sparseloom``: what each subcommand prints, and how it fails."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.cli import run
from sparseloom.cli.main import main
from sparseloom.core.settings import settings

SPMV = "y(i) = A(i,j) * x(j)"
COMMANDS = ("compile", "run", "explore", "convert", "formats", "cache", "info")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that succeeds writes to its output."""
    status = main(arguments)
    told = capsys.readouterr()
    assert status == 0, told.err
    return told.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The paragraph that a command with a mistake writes, without the name of the program."""
    status = main(arguments)
    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    assert "Traceback" not in told.err and "\n\n" not in told.err
    *_, paragraph = told.err.rpartition("sparseloom: ")
    return paragraph.rstrip("\n")


def test_help_lists_every_command_and_each_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^    {command} ", overview, re.MULTILINE)
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"examples:\n  sparseloom {command}" in capsys.readouterr().out


def test_without_a_command_the_help_is_shown_and_the_status_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "examples:" in capsys.readouterr().err


def test_compile_prints_the_c(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "compile", SPMV, "-f", "A:csr")
    assert text.rstrip("\n") == sl.program(SPMV, formats={"A": "csr"}).source.rstrip("\n")


@pytest.mark.parametrize("stage", ["notation", "concrete", "loops"])
def test_compile_shows_one_stage(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "compile", SPMV, "-f", "A:csr", "--show", stage)
    assert text == sl.program(SPMV, formats={"A": "csr"}).show(stage).rstrip("\n") + "\n"


def test_compile_shows_several_stages_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "compile", SPMV, "-f", "A:csr", "--show", "concrete", "--show", "c", "--explain")
    assert re.findall("^== (.*) ==$", text, re.MULTILINE) == ["concrete", "c", "explain"]


def test_compile_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert "j: driven by A" in printed(capsys, "compile", SPMV, "-f", "A:csr", "--explain")


@pytest.mark.parametrize("option", [("-t", "A:float32", "-t", "x:float32"), ("--dtype", "float32")])
def test_compile_for_other_dtypes(option: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "compile", SPMV, "-f", "A:csr", *option)
    assert "const float *restrict A_vals" in text and "double" not in text


def test_compile_under_a_semiring_skips_absent_entries(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "compile", SPMV, "-f", "A:csr", "--semiring", "min_plus", "--show", "loops", "--explain")
    assert "j: driven by A" in text and "min(y_acc, A_vals[pA2] + x_vals[j])" in text


def test_compile_takes_mode_orders_in_formats(capsys: pytest.CaptureFixture[str]) -> None:
    by_letters = printed(capsys, "compile", SPMV, "-f", "A:ds:1,0")
    assert by_letters == printed(capsys, "compile", SPMV, "-f", "A:csc")


def test_compile_writes_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "compile", SPMV, "-f", "A:csr", "-o", "spmv.c") == ""
    assert Path("spmv.c").read_text() == sl.program(SPMV, formats={"A": "csr"}).source.rstrip("\n") + "\n"


def test_run_reads_and_writes_files(capsys: pytest.CaptureFixture[str]) -> None:
    matrix = sp.random_array((6, 5), density=0.4, format="csr", rng=np.random.default_rng(1))
    scipy.io.mmwrite("a.mtx", matrix)
    scipy.io.mmwrite("x.mtx", np.arange(5.0)[:, None])  # Matrix Market has no vectors: this is one column
    assert printed(capsys, "run", SPMV, "-i", "A=a.mtx", "-i", "x=x.mtx", "-o", "y=y.npy") == ""
    np.testing.assert_allclose(np.load("y.npy"), matrix @ np.arange(5.0))


@pytest.mark.parametrize("format", ["dense", "s"])
def test_vectors_travel_through_matrix_market_as_columns(format: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.array([0.0, 2.0, 0.0, 3.0]))
    printed(capsys, "run", "y(i) = 2 * x(i)", "-i", "x=x.npy", "-f", f"x:{format}", "-f", f"y:{format}", "-o", "y=y.mtx")
    written = scipy.io.mmread("y.mtx")
    np.testing.assert_array_equal(written if format == "dense" else written.toarray(), [[0], [4], [0], [6]])
    printed(capsys, "run", "s = y(i)", "-i", "y=y.mtx", "-o", "s.mtx")
    np.testing.assert_array_equal(scipy.io.mmread("s.mtx"), [[10.0]])


def test_run_without_an_output_prints_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    sl.write("a.npz", sl.asarray(np.eye(3), format="csr"))
    text = printed(capsys, "run", "C(i,j) = half * A(i,j)", "-i", "A=a.npz", "-i", "half=0.5", "-f", "C:dense", "-q")
    assert text == "<Tensor 'C': 3 x 3, dense(2), float64, 72 bytes>\n  [[0.5 0.  0. ]\n   [0.  0.5 0. ]\n   [0.  0.  0.5]]\n"


def test_run_on_random_data_depends_on_the_seed_only(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("run", SPMV, "-f", "A:csr", "-d", "i:30", "-d", "j:20", "--density", "0.2")
    first = printed(capsys, *command, "--seed", "1")
    assert first == printed(capsys, *command, "--seed", "1", "--target", "interpret")
    assert first != printed(capsys, *command, "--seed", "2")


def test_run_describes_its_operands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SPMV, "-f", "A:csr", "-d", "i:30", "-d", "j:20", "--density", "0.2", "-t", "float32"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["A  30 x 20, csr, float32, 120 stored, random", "x  20, dense(1), float32, random"]


def test_run_takes_programs_of_several_statements(capsys: pytest.CaptureFixture[str]) -> None:
    """As ``kernel.plan`` prints them. Temporaries tie sizes as operands do."""
    matrix = sp.random_array((6, 5), density=0.4, format="csr", rng=np.random.default_rng(1))
    scipy.io.mmwrite("a.mtx", matrix)
    program = "A: csr\nt(i) = A(i,j) * x(j)\n  parallelize(i,CPUThread,NoRaces)\ny(k) = A(j,k) * t(j)"
    np.save("x.npy", np.arange(5.0))
    assert printed(capsys, "run", program, "-i", "A=a.mtx", "-i", "x=x.npy", "-o", "y=y.npy") == ""
    np.testing.assert_allclose(np.load("y.npy"), matrix.T @ (matrix @ np.arange(5.0)))
    assert main(["run", "A: csr\nt(i) = A(i,j) * x(j)\ny(k) = A(k,l) * t(l)", "-d", "k:12"]) == 0
    assert capsys.readouterr().err.splitlines()[:2] == ["A  12 x 12, csr, float64, 1 stored, random", "x  12, dense(1), float64, random"]
    assert main(["run", program, "-f", "A:csc"]) == 2
    assert "-f gives a format to A, and so does the program" in capsys.readouterr().err


def test_run_ties_the_sizes_of_a_tensor_read_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert "12 x 12" in printed(capsys, "run", "C(i,k) = A(i,j) * A(j,k)", "-f", "A:csc", "-f", "C:dense", "-d", "k:12")


def test_run_adds_to_a_given_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("y.npy", np.full(4, 10.0))
    printed(capsys, "run", "y(i) += two * one(i)", "-i", "y=y.npy", "-i", "two=2", "-d", "i:4", "-o", "out.npy")
    assert (np.load("out.npy") > 10).all()
    assert (np.load("y.npy") == 10).all()


def test_run_follows_its_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    problem = ("run", SPMV, "-f", "A:csr", "-d", "i:30", "-d", "j:20")
    plain = printed(capsys, *problem)
    assert printed(capsys, *problem, "-s", "split(i,i0,i1,8) parallelize(i0,CPUThread,NoRaces)") == plain
    assert refused(capsys, *problem, "-s", "split(k,k0,k1,8)").startswith("[S102] cannot split(k, k0, k1, 8): there is no loop over k")


def test_run_tells_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SPMV, "-f", "A:csr", "-d", "i:30", "-d", "j:20", "--time", "--repeat", "5"]) == 0
    assert re.search(r"^y  median \S+ (s|ms|µs) of 5 runs, fastest \S+ (s|ms|µs)$", capsys.readouterr().err, re.MULTILINE)


def test_convert_changes_file_format_and_dtype(capsys: pytest.CaptureFixture[str]) -> None:
    matrix = sp.random_array((6, 5), density=0.4, format="csr", rng=np.random.default_rng(1))
    scipy.io.mmwrite("a.mtx", matrix)
    printed(capsys, "convert", "a.mtx", "a.npz", "-f", "csc", "-t", "float32")
    read = sl.read("a.npz")
    assert (read.format, read.dtype) == (sl.csc, np.float32)
    np.testing.assert_array_equal(read.to_numpy(), matrix.toarray().astype(np.float32))


def test_formats_lists_names_and_draws_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "csc         ds:1,0" in printed(capsys, "formats")
    text = printed(capsys, "formats", "csr")
    assert text.startswith("csr (ds)\n  level 0: dense over mode 0\n  level 1: compressed over mode 1\n")
    assert text.endswith("  pos1    0 1 2 4 4\n  crd1    3 0 2 3\n  values  1 2 3 4\n")


@pytest.mark.parametrize("format", ["dense(2)", "csf", "coo(4)", "bcsr(2,3)", "ell", "s", "dense(0)"])
def test_formats_draws_any_format(format: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "values" in printed(capsys, "formats", format)


def test_cache_is_shown_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "kernels")
    monkeypatch.setattr(settings, "cache_limit", 1 << 20)
    printed(capsys, "run", "y(i) = 3.25 * x(i)", "-d", "i:3")
    assert re.search(rf"folder   {tmp_path}/kernels\nkernels  1\nsize     \S+ KiB of 1 MiB \(\S+ %\)\n", printed(capsys, "cache"))
    assert re.fullmatch(r"removed 1 kernel, \S+ KiB\n", printed(capsys, "cache", "clear"))
    assert "kernels  0\nsize     0 bytes of 1 MiB\n" in printed(capsys, "cache", "show")


def test_cache_may_be_switched_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(settings, "use_cache", False)
    assert printed(capsys, "cache") == "folder   none: kernels are not kept (SPARSELOOM_NO_CACHE is set)\n"


def test_info_tells_versions_and_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "info")
    assert text.startswith(f"sparseloom {sl.__version__}\nPython ")
    assert "\nflags      " in text and "\ncache\n  folder " in text


def test_info_tells_that_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "compiler   $CC is 'no-such-compiler', but there is no such program" in printed(capsys, "info")


def test_warnings_are_told_as_notes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert main(["run", "y(i) = 7.125 * x(i)", "-d", "i:3"]) == 0
    told = capsys.readouterr().err
    assert "sparseloom: note: $CC is 'no-such-compiler'" in told and ".py:" not in told


MISTAKES = {
    "statement": (("compile", "y(i) = A(i,j * x(j)"), "cannot read the statement: expected ')' after 'j'\n"),
    "format": (("compile", SPMV, "-f", "A:sss"), "the format 'sss' is for tensors of order 3, but this tensor has order 2"),
    "format name": (("compile", SPMV, "-f", "B:csr"), "formats names 'B', but y(i) = A(i,j) * x(j) has y, A, x"),
    "format name in run": (("run", SPMV, "-f", "B:csr"), "-f names B, but the statement has y, A, x"),
    "format form": (("compile", SPMV, "-f", "Acsr"), "cannot read -f Acsr: it must be NAME:VALUE\n  help: write for example -f A:csr"),
    "format twice": (("compile", SPMV, "-f", "A:csr", "-f", "A:csc"), "-f names A twice: csr and csc"),
    "dtype": (("compile", SPMV, "-t", "A:M8[s]"), "values of type datetime64[s] are not supported; there are bool"),
    "dtype name": (("compile", SPMV, "-t", "y:float32"), "-t names y, but the statement has A, x"),
    "workspace": (("compile", SPMV, "--workspace", "tree"), "there is no workspace 'tree'; there are dense, hash, sort"),
    "semiring": (("compile", SPMV, "--semiring", "plus"), "there is no semiring 'plus'; there are plus_times"),
    "no file": (("run", SPMV, "-i", "A=none.mtx"), "cannot open none.mtx: No such file or directory"),
    "kind of file": (("run", SPMV, "-i", "A=a.txt"), "the name 'a.txt' does not say what kind of file it is"),
    "input name": (("run", SPMV, "-i", "y=a.mtx"), "-i names y, but the statement has A, x"),
    "output name": (("run", SPMV, "-o", "z=z.mtx"), "-o names z, but the result is y\n  help: write -o y=z.mtx"),
    "output folder": (("compile", SPMV, "-o", "none/y.c"), "cannot open none/y.c: No such file or directory"),
    "extent": (("run", SPMV, "-d", "i:many"), "cannot read -d i:many: 'many' is not a whole number\n  help: write for example -d i:1000"),
    "extent name": (("run", SPMV, "-d", "k:4"), "-d names k, but the statement has i, j"),
    "density": (("run", SPMV, "-f", "A:csr", "--density", "2"), "the density is a fraction from 0 to 1, not 2.0"),
    "repeat": (("run", SPMV, "--repeat", "0"), "--repeat is how often to run, at least once, not 0"),
    "seed": (("run", SPMV, "--seed", "-1"), "--seed is a whole number, at least 0, not -1"),
    "memory": (("run", SPMV, "-d", "i:100000000", "-d", "j:10000000"), "there is not enough memory for this"),
    "storage": (("compile", "C(i,i) += A(i,j)", "-f", "A:csr", "-f", "C:csr"), "cannot add to a part of C alone"),
    "convert": (("convert", "none.mtx", "b.mtx"), "cannot open none.mtx: No such file or directory"),
    "modes to draw": (("formats", "csf(12)"), "csf(12) has 12 modes, and pictures are drawn of up to 5"),
    "format to draw": (("formats", "xyz"), "there is no level 'x' in the format 'xyz'"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_paragraph(mistake: tuple[tuple[str, ...], str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments, text = mistake
    assert refused(capsys, *arguments).startswith(text)


def test_a_file_of_another_order_or_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("a.npy", np.ones((3, 4)))
    told = refused(capsys, "run", SPMV, "-i", "x=a.npy")
    assert told == "a.npy holds a tensor of shape (3, 4), but x has 1 mode in the statement"
    assert refused(capsys, "run", SPMV, "-i", "A=a.npy", "-d", "j:5") == "-d says that j runs to 5, but mode 1 of A has size 4"


def test_a_malformed_file_is_refused_and_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 3.0\n")
    assert "line 3" in refused(capsys, "run", SPMV, "-i", "A=a.mtx", "-o", "y.mtx")
    assert not Path("y.mtx").exists()


@pytest.mark.parametrize("arguments", [("compile",), ("compile", SPMV, "--show", "assembly"), ("cache", "burn"), ("walk",)])
def test_a_misspelt_command_or_option_ends_with_status_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_what_a_sparse_result_held_before_is_read_like_an_operand(capsys: pytest.CaptureFixture[str]) -> None:
    scipy.io.mmwrite("a.mtx", sp.coo_array(np.eye(3)))
    scipy.io.mmwrite("r.mtx", sp.coo_array(np.ones((3, 3))))
    printed(capsys, "run", "R(i,j) += A(i,j)", "-i", "A=a.mtx", "-i", "R=r.mtx", "-f", "R:csr", "-o", "R=sum.mtx")
    np.testing.assert_array_equal(sl.read("sum.mtx").to_numpy(), np.eye(3) + 1)


def test_without_a_device_that_is_said_before_anything_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise sl.DeviceError("there is no CUDA device: here is why\n  help: target='c' computes without one")

    monkeypatch.setattr(run, "device", missing)
    said = refused(capsys, "run", SPMV, "-f", "A:csr", "-i", "A=no-such-file.mtx", "--target", "cuda")
    assert said == "there is no CUDA device: here is why\n  help: target='c' computes without one"
