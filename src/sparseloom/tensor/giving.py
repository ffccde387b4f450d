"""Tensors as objects of other libraries: one method for each neighbour, whose file in ``interop/`` does it."""

from __future__ import annotations

from typing import Any

from sparseloom.core.errors import CompilerBug
from sparseloom.formats.storage import Storage
from sparseloom.interop.binsparse import described
from sparseloom.interop.binsparse import give as given
from sparseloom.interop.registry import neighbour
from sparseloom.programs.cuda.storages import to_host


class Giving:
    """What other libraries get of a tensor, over the same memory where their layout allows."""

    __slots__ = ()

    @property
    def storage(self) -> Storage:
        """The stored form."""
        raise CompilerBug(self, "a tensor must give its storage")

    def to_scipy(self) -> Any:
        """A SciPy sparse array, over the same memory for csr, csc, coo, bcsr and dia in main memory; other formats become csr or coo."""
        return neighbour("scipy").give(self)

    def to_torch(self) -> Any:
        """A PyTorch tensor where this one is, over the same memory for dense, csr, csc and bcsr."""
        return neighbour("torch").give(self)

    def to_cupy(self) -> Any:
        """A CuPy array, or a matrix of cupyx.scipy.sparse, over the same memory; what is in main memory is copied to the device."""
        return neighbour("cupy").give(self)

    def to_sparse(self) -> Any:
        """An array of PyData/Sparse with the same fill: GCXS over the same memory for csr and csc, else COO."""
        return neighbour("sparse").give(self)

    def to_jax(self) -> Any:
        """A copy as a JAX array: BCSR for csr, BCOO for other sparse formats."""
        return neighbour("jax").give(self)

    def to_pandas(self, **options: Any) -> Any:
        """A pandas frame or series, with sparse columns unless this is dense; ``index=`` and ``columns=`` are their labels."""
        return neighbour("pandas").give(self, **options)

    def to_networkx(self, create_using: Any = None) -> Any:
        """The graph whose adjacency matrix this is: a ``networkx.DiGraph``, unless ``create_using`` names another class."""
        return neighbour("networkx").give(self, create_using=create_using)

    def to_graphblas(self) -> Any:
        """A copy as a matrix or vector of python-graphblas."""
        return neighbour("graphblas").give(self)

    def to_xarray(self, **options: Any) -> Any:
        """An ``xarray.DataArray`` that holds this tensor; ``dims=``, ``coords=`` and ``attrs=`` are as there."""
        return neighbour("xarray").give(self, **options)

    def to_dask(self, **options: Any) -> Any:
        """A Dask array of chunks of this tensor; ``chunks=`` is as in ``dask.array.from_array``."""
        return neighbour("dask").give(self, **options)

    def __binsparse_descriptor__(self) -> dict[str, Any]:
        """What the arrays of ``__binsparse__`` are, in the words of binsparse."""
        return dict(described(to_host(self.storage))[0])

    def __binsparse__(self) -> dict[str, Any]:
        """The arrays of this tensor by their names in binsparse, over the same memory; what is on a device is copied."""
        return dict(given(self)[1])
