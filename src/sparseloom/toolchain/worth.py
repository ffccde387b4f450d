"""From how much work on a loop is planned for threads here: never, where the C compiler makes none."""

from __future__ import annotations

from sparseloom.plan.choose import Worth
from sparseloom.toolchain.openmp import kernels_have_threads

HERE = Worth(has_threads=kernels_have_threads)
