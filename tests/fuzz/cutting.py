"""Products that are cut into statements although they are small, so that cases which are quick to compute are cut, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from sparseloom.plan import contraction, network


@contextmanager
def cut_eagerly() -> Iterator[None]:
    """Cut every product that may be cut: a nest over more than two factors hardly ever pays, and steps cost nothing."""
    with (
        mock.patch.object(network, "CALL", 0.0),
        mock.patch.object(network, "FACTOR", 100.0),
        mock.patch.object(contraction, "LEAST", 0.0),
        mock.patch.object(contraction, "GAIN", 1.0),
    ):
        yield
