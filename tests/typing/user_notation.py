"""Index notation in Python, and a schedule of it."""

from typing import assert_type

import sparseloom as sl

A, x, y = sl.eye(20), sl.ones(20), sl.zeros(20, name="y")
i, j = sl.indices("i j")
i0, i1 = sl.indices("i0 i1")
product = A[i, j] * x[j]
assert_type(product, sl.Expression)
assert_type(x[i], sl.Expression)
assert_type(-product + 1, sl.Expression)
y[i] = product
schedule = y.schedule().split(i, i0, i1, 4).parallelize(i0, sl.CPUThread, sl.NoRaces)
assert_type(schedule.text, str)
