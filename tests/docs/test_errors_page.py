"""docs/errors.md explains every error and warning, and the package exports them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sparseloom
from sparseloom.core import errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
CLASSES = [found for found in vars(errors).values() if isinstance(found, type) and found.__module__ == errors.__name__]


def test_every_class_has_a_section_and_no_other_does() -> None:
    headings = re.findall(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(found.__name__ for found in CLASSES)


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_class_is_exported_below_its_root(error: type) -> None:
    assert getattr(sparseloom, error.__name__) is error
    assert issubclass(error, (sparseloom.SparseloomError, sparseloom.SparseloomWarning))
