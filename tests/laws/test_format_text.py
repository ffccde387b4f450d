"""Law of format text: what is printed can be read back, and names and letters mean the same."""

from __future__ import annotations

import numpy as np
from levels.random_storage import named_formats, random_format

from sparseloom.formats.format import Format
from sparseloom.formats.levels import Compressed, Singleton
from sparseloom.formats.named import name_of
from sparseloom.formats.text import parse_format


def assert_reads_back(format: Format) -> None:
    for text in (format.text, str(format), name_of(format)):
        assert parse_format(text) == format
        assert parse_format(text, format.order) == format


def test_random_stacks_read_back():
    rng = np.random.default_rng(5)
    for _ in range(500):
        assert_reads_back(random_format(rng, int(rng.integers(0, 6))))


def test_named_formats_read_back():
    for order in range(7):
        for format in named_formats(order):
            assert_reads_back(format)


def test_every_combination_of_marks_reads_back():
    both = (True, False)
    for ordered in both:
        for first in both:
            for second in both:
                head = Compressed(ordered, False)
                assert_reads_back(Format((head, Singleton(second, first), Singleton(ordered, second)), (2, 0, 1)))
