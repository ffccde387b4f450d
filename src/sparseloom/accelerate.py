"""Other libraries made faster, where one asks for it: ``sl.accelerate.scipy()``.

>>> faster = sl.accelerate.scipy()
>>> faster.undo()
"""

from __future__ import annotations

from sparseloom.tensor.interop.scipy_products import LEAST, Acceleration

__all__ = ["scipy"]


def scipy(least: int = LEAST) -> Acceleration:
    """Let SciPy's own ``csr_array`` and ``csc_array`` (and matrices) compute products and sums with our kernels, on all threads.

    It holds until the ``undo()`` of what is returned, or for a block: ``with sl.accelerate.scipy(): ...``. Matrices with fewer than
    ``least`` entries, or of a kind that we would compute otherwise, are left to SciPy. What comes out is what SciPy gives, but
    with sorted indices, and floats that were added in another order.

    >>> import scipy.sparse as sp
    >>> A = sp.eye_array(3, format="csr")
    >>> with sl.accelerate.scipy(least=0):
    ...     (A @ A).nnz
    3
    """
    return Acceleration(least)
