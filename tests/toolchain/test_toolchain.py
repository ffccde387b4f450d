"""Finding a compiler and running it."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest
from toolchain.kernels import SPMV, THREADED_SUM, returning, stand_in

from sparseloom.core.errors import ToolchainError
from sparseloom.targets.c_toolchain import C_TOOLCHAIN
from sparseloom.toolchain import libraries as library
from sparseloom.toolchain.cache import KernelCache
from sparseloom.toolchain.compilers import CompileError, compile_library, cpu_features, find_compiler, refused_flags


@pytest.fixture(autouse=True)
def no_asked_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of temporary files that the test can look into."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    return path


def test_gcc_comes_before_clang_before_cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("cc", "clang", "gcc"):
        path = program(tmp_path, name)
        assert find_compiler().path == str(path)


def test_cc_names_a_program_and_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "my cc")
    monkeypatch.setenv("CC", f"'{path}' -m64 --sysroot='/a b'")
    compiler = find_compiler()
    assert (compiler.path, compiler.arguments) == (str(path), ("-m64", "--sysroot=/a b"))


def test_the_identity_follows_links_and_wrapped_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper, real = program(tmp_path, "ccache"), program(tmp_path, "gcc-12")
    (tmp_path / "gcc").symlink_to(real)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "ccache gcc -m64")
    assert [path for path, _, _ in find_compiler().identity] == [str(wrapper), str(real)]
    before = find_compiler()
    os.utime(real, ns=(1, 1))
    assert find_compiler().identity != before.identity
    assert KernelCache.key(SPMV, find_compiler()) != KernelCache.key(SPMV, before)


def test_no_compiler_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolchainError) as refusal:
        library.load(SPMV)
    assert (
        str(refusal.value)
        == """\
no C compiler was found: $CC is not set, and gcc, clang and cc are not on the PATH
  help: install one, for example
    Debian, Ubuntu:  apt install gcc libc6-dev
    Fedora:          dnf install gcc
    macOS:           xcode-select --install
    conda:           conda install -c conda-forge c-compiler
  or name one in $CC; target="interpret" needs no compiler"""
    )


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("/nonexistent/cc -O2", "$CC is '/nonexistent/cc -O2', but there is no such program\n  help: install one"),
        ("gcc 'half", '$CC is "gcc \'half", which cannot be read: No closing quotation\n  help: write a program'),
        ("''", "$CC is \"''\", but there is no such program"),
    ],
)
def test_a_compiler_that_is_not_there_is_not_replaced(monkeypatch: pytest.MonkeyPatch, asked: str, complaint: str) -> None:
    monkeypatch.setenv("CC", asked)
    with pytest.raises(ToolchainError) as refusal:
        find_compiler()
    assert str(refusal.value).startswith(complaint)


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "cc")
    path.write_text("#!/nonexistent/interpreter\n")
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(ToolchainError, match=f"the C compiler {path} cannot be started: No such file or directory"):
        compile_library(SPMV, find_compiler())


def test_a_compile_error_shows_the_message_and_keeps_the_source(temporary: Path) -> None:
    compiler = find_compiler()
    with pytest.raises(CompileError) as refusal:
        compile_library("int entry( { return 0; }\n", compiler)
    first, *_, source, help_text = str(refusal.value).splitlines()
    assert first == f"{compiler.path} ended with status 1 on a generated kernel"
    assert "error: " in str(refusal.value)
    kept = Path(source.removeprefix("  source: "))
    assert kept.read_text() == "int entry( { return 0; }\n"
    assert kept.parent.parent == temporary and kept.parent.stat().st_mode & 0o777 == 0o700
    assert help_text == "  help: send the source with a report, or try another compiler through $CC"


def test_a_long_message_is_cut(temporary: Path) -> None:
    with pytest.raises(CompileError, match=r"\n    \.\.\. and \d+ lines more\n  source: "):
        compile_library("\n".join(f"int a{n} = b{n};" for n in range(40)), find_compiler())


def test_missing_headers_are_recognised(temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "cc")
    path.write_text("#!/bin/sh\necho 'kernel.c:1:10: fatal error: stdint.h: No such file or directory' >&2\nexit 1\n")
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(CompileError, match="help: the headers of the C library are missing: install libc6-dev"):
        compile_library(SPMV, find_compiler())


def test_no_room_for_temporary_files_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(ToolchainError, match=r"no temporary file can be written: No such file or directory\n  help: set \$TMPDIR"):
        compile_library(SPMV, find_compiler())


def test_success_leaves_no_files(temporary: Path) -> None:
    assert compile_library(returning(0), find_compiler())[1:4] in (b"ELF", b"\xfa\xed\xfe")
    assert list(temporary.iterdir()) == []


def test_a_kernel_costs_one_run_and_cflags_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-ffast-math")
    calls = stand_in(tmp_path, monkeypatch)
    compile_library(SPMV, find_compiler())
    (call,) = calls()
    assert call.startswith(" ".join(C_TOOLCHAIN.flags) + " -o ") and call.endswith("/kernel.c -lm")


def test_openmp_is_linked_only_where_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    compile_library(SPMV, find_compiler())
    compile_library(THREADED_SUM, find_compiler())
    assert ["-fopenmp" in call for call in calls()] == [False, True]


def test_our_compiler_knows_its_flags_and_a_poorer_one_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_compiler()
    strange = dataclasses.replace(compiler, flags=(*C_TOOLCHAIN.flags, "-funheard-of"))
    assert refused_flags(strange) - {"-funheard-of"} == refused_flags(compiler)
    stand_in(tmp_path, monkeypatch, refusing=("-fcx-fortran-rules", "-march=native"))
    assert refused_flags(find_compiler()) >= {"-fcx-fortran-rules", "-march=native"}


def test_the_features_of_the_cpu_are_a_stable_digest() -> None:
    first = cpu_features()
    cpu_features.cache_clear()
    assert cpu_features() == first and re.fullmatch("[0-9a-f]{64}", first)
