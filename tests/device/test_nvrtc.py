"""Kernels of our own are compiled by NVRTC, here as on any machine without a device; a text is compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparseloom.core.errors import ToolchainError
from sparseloom.core.settings import settings
from sparseloom.programs.cuda import nvrtc, packages
from sparseloom.programs.cuda.checks import SOURCE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_checks_compile(folder: Path, architecture: str) -> None:
    assert nvrtc.compile_cubin(SOURCE, architecture).startswith(b"\x7fELF")


def test_a_text_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = nvrtc.compile_cubin('extern "C" __global__ void k(int *y) { *y = 1; }')
    monkeypatch.setattr(nvrtc, "_compile", None)
    assert nvrtc.compile_cubin('extern "C" __global__ void k(int *y) { *y = 1; }') == made
    with pytest.raises(TypeError):
        nvrtc.compile_cubin('extern "C" __global__ void k(int *y) { *y = 1; }', "sm_80")


def test_what_the_compiler_says_is_passed_on(folder: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        nvrtc.compile_cubin('extern "C" __global__ void k() { nothing; }')
    text = str(caught.value)
    assert text.startswith("NVRTC ") and 'error: identifier "nothing" is undefined' in text


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolchainError) as caught:
        packages.package("cuda.no_such_thing")
    assert str(caught.value) == (
        "kernels for CUDA need cuda.no_such_thing, which cannot be loaded: No module named 'cuda.no_such_thing'\n"
        "  help: pip install 'sparseloom[cuda]'"
    )


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bindings:
        @staticmethod
        def nvrtcVersion() -> None:
            raise RuntimeError("Failed to dlopen libnvrtc.so.13")

    monkeypatch.setattr(nvrtc, "package", lambda name: Bindings)
    nvrtc.version.cache_clear()
    with pytest.raises(ToolchainError, match=r"need NVRTC, which cannot be loaded: Failed to dlopen"):
        nvrtc.version()
