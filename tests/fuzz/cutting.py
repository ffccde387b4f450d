"""Products that are cut into statements although they are small, so that cases which are quick to compute are cut, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from sparseloom.plan import contraction
from sparseloom.plan.machine import NestCosts, this_machine


@contextmanager
def cut_eagerly() -> Iterator[None]:
    """Cut every product that may be cut: a nest over more than two factors hardly ever pays, and steps cost nothing."""
    machine = replace(this_machine(), nests=NestCosts(call=0.0, factor=100.0, least=0.0, gain=1.0))
    with mock.patch.object(contraction, "this_machine", lambda: machine):
        yield
