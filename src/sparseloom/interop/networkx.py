"""networkx: a graph as its adjacency matrix, in the order of its nodes, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparseloom.core.errors import ShapeError
from sparseloom.interop import scipy
from sparseloom.interop.entry import Intake, converted


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is one of networkx' graphs."""
    is_graph = any(parent.__name__ == "Graph" and parent.__module__.partition(".")[0] == "networkx" for parent in kind.__mro__)
    return from_graph if is_graph else None


def from_graph(graph: Any, **options: Any) -> Intake:
    """The adjacency matrix as csr; the options are those of ``networkx.to_scipy_sparse_array``."""
    import networkx

    if not len(graph):
        raise ShapeError("the graph has no nodes, and so no adjacency matrix")
    matrix = networkx.to_scipy_sparse_array(graph, format="csr", **options)
    reader = scipy.reader_for(type(matrix))
    assert reader is not None
    return converted(reader(matrix), f"copied from a graph of {graph.number_of_nodes()} nodes and {graph.number_of_edges()} edges")


def give(tensor: Any, create_using: Any = None) -> Any:
    """The graph whose adjacency matrix this is: a directed one, unless ``create_using`` says otherwise."""
    import networkx

    if tensor.ndim != 2 or tensor.shape[0] != tensor.shape[1]:
        raise ShapeError(f"an adjacency matrix is square, and this tensor has the shape {tensor.shape}")
    return networkx.from_scipy_sparse_array(scipy.give(tensor), create_using=create_using or networkx.DiGraph)
