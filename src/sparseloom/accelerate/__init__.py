"""Other libraries made faster, where one asks for it: ``sl.accelerate.scipy()``.

>>> faster = sl.accelerate.scipy()
>>> faster.undo()
"""

from __future__ import annotations

from sparseloom.accelerate.scipy_products import Acceleration

__all__ = ["scipy"]


def scipy(least: int | None = None) -> Acceleration:
    """Let SciPy's own ``csr_array`` and ``csc_array`` (and matrices) compute products and sums with our kernels, on all threads.

    It holds until the ``undo()`` of what is returned, or for a block: ``with sl.accelerate.scipy(): ...``. Matrices of a kind that we would
    compute otherwise are left to SciPy, and so are those with fewer than ``least`` entries, all of an operation together. If that is not
    said, each operation has its own: A @ B begins to gain at some 40,000, A @ x on several threads at 300,000. What comes out is what SciPy
    gives, but with sorted indices, and floats that were added in another order.

    >>> import scipy.sparse as sp
    >>> A = sp.eye_array(3, format="csr")
    >>> with sl.accelerate.scipy(least=0):
    ...     (A @ A).nnz
    3
    """
    return Acceleration(least)
