"""Print the seconds that the first call of a statement takes in this process, imports not counted."""

from __future__ import annotations

import sys
import time

import numpy as np
import scipy.sparse as sp

import sparseloom as sl

matrix = sp.random_array((1000, 1000), density=0.01, format="csr", rng=np.random.default_rng(7))
given = {"A": matrix, "B": matrix.T.tocsr(), "x": np.ones(1000)}
statement = sys.argv[1]
operands = {name: value for name, value in given.items() if f"{name}(" in statement.partition("=")[2]}

start = time.perf_counter()
sl.evaluate(statement, **operands)
print(time.perf_counter() - start)
