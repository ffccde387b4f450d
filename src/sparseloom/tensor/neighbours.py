"""What other libraries' objects become where more is to be said than ``asarray`` takes, and what they take from us beside tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparseloom.interop import networkx, opt_einsum
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor


def from_networkx(
    graph: Any, nodelist: Sequence[Any] | None = None, weight: str | None = "weight", dtype: Any = float, name: str | None = None
) -> Tensor:
    """The adjacency matrix of a networkx graph, as csr: ``A[i, j]`` is the weight of the edge from node i to node j.

    Nodes come in the order of ``nodelist``, or else of the graph. ``weight`` is the attribute that edges have it under; an edge
    without one weighs 1, and so do all with ``weight=None``. Edges between the same two nodes are summed.

    >>> import networkx
    >>> sl.from_networkx(networkx.path_graph(3)).to_numpy()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    entry = networkx.from_graph(graph, nodelist=nodelist, weight=weight, dtype=dtype)
    return Tensor(entry.storage, name, entry.notes, entry.guard)


def SparsePath(*operands: Any) -> Any:
    """An optimizer for ``opt_einsum.contract`` that knows how full the operands are; pass them, or their densities, in order.

    ``opt_einsum.contract("ij,jk,kl->il", A, B, C, optimize=sl.SparsePath(A, B, C))``

    >>> import opt_einsum
    >>> A, x = sl.eye(3), np.ones(3)
    >>> opt_einsum.contract("ij,jk,k->i", A, A, x, optimize=sl.SparsePath(A, A, x)).to_numpy()
    array([1., 1., 1.])
    """
    return opt_einsum.optimizer([_density(operand) for operand in operands])


def _density(operand: Any) -> float:
    """The share of an operand that is stored."""
    if isinstance(operand, (int, float)):
        return float(operand)
    tensor = asarray(operand)
    return 1.0 if tensor.format.is_dense or not tensor.size else tensor.nnz / tensor.size
