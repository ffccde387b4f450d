"""Where the runtime takes its settings from."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparseloom.core import settings
from sparseloom.core.errors import ToolchainError


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARSELOOM_CACHE_DIR", "SPARSELOOM_CACHE_LIMIT", "SPARSELOOM_NO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/ada")


def test_the_cache_folder_comes_from_the_nearest_place_that_names_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert settings.cache_folder() == Path("/ada/.cache/sparseloom")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/ada")
    assert settings.cache_folder() == Path("/var/cache/ada/sparseloom")
    monkeypatch.setenv("SPARSELOOM_CACHE_DIR", "~/kernels")
    assert settings.cache_folder() == Path("/ada/kernels")
    monkeypatch.setattr(settings.settings, "cache_folder", tmp_path)
    assert settings.cache_folder() == tmp_path


def test_a_relative_xdg_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert settings.cache_folder() == Path("/ada/.cache/sparseloom")


@pytest.mark.parametrize(("value", "wanted"), [("1", False), ("yes", False), ("0", True), ("", True)])
def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool) -> None:
    monkeypatch.setenv("SPARSELOOM_NO_CACHE", value)
    assert (settings.cache_folder() is not None) == wanted


@pytest.mark.parametrize(
    ("text", "size"), [("65536", 65536), ("200M", 200 << 20), ("1.5 GiB", 3 << 29), ("8k", 8192), ("2TB", 2 << 40), ("", 512 << 20)]
)
def test_the_cache_limit_is_a_number_of_bytes_with_a_unit(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("SPARSELOOM_CACHE_LIMIT", text)
    assert settings.cache_limit() == size


def test_a_limit_that_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSELOOM_CACHE_LIMIT", "plenty")
    with pytest.raises(ToolchainError) as refusal:
        settings.cache_limit()
    assert str(refusal.value) == (
        "SPARSELOOM_CACHE_LIMIT is 'plenty', which is not a size\n  help: write a number of bytes, such as 200M or 2G"
    )


def test_the_int32_limit_is_what_an_int32_holds() -> None:
    assert settings.Settings().int32_limit == 2**31 - 1
