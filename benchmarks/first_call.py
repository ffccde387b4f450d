"""Print the seconds that the first call of a statement takes in this process, imports not counted."""

from __future__ import annotations

import sys
import time

import numpy as np

from sparseloom.calls.evaluation import evaluate
from sparseloom.tensor.creation import random


def main(statement: str) -> None:
    """Evaluate a statement on SciPy matrices A and B and a vector x."""
    matrix = random((1000, 1000), 0.01, "csr", seed=7).to_scipy()
    given = {"A": matrix, "B": matrix.T.tocsr(), "x": np.ones(1000)}
    operands = {name: value for name, value in given.items() if f"{name}(" in statement.partition("=")[2]}
    start = time.perf_counter()
    evaluate(statement, **operands)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1])
