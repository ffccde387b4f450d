"""networkx: graphs as adjacency matrices, in the order of their nodes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import sparseloom as sl


def test_graphs_are_read() -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 3.0)])
    graph.add_edge("c", "a")
    expected = np.array([[0, 2, 0], [0, 0, 3], [1, 0, 0]])
    tensor = sl.asarray(graph)
    assert tensor.format == sl.csr and tensor.notes == ("copied from a graph of 3 nodes and 3 edges",)
    np.testing.assert_array_equal(tensor.to_numpy(), expected)
    turned = sl.from_networkx(graph, nodelist=["c", "b", "a"], name="G")
    assert turned.name == "G"
    np.testing.assert_array_equal(turned.to_numpy(), expected[::-1, ::-1])
    plain = sl.from_networkx(graph, weight=None, dtype=np.int64)
    assert plain.dtype == np.int64 and plain.to_numpy().sum() == 3
    both = sl.asarray(nx.path_graph(3))
    np.testing.assert_array_equal(both.to_numpy(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    with pytest.raises(sl.ShapeError, match="the graph has no nodes"):
        sl.asarray(nx.Graph())


def test_matrices_become_graphs() -> None:
    tensor = sl.asarray(np.array([[0, 2.0], [0, 1]]), format="csr")
    graph = tensor.to_networkx()
    assert type(graph) is nx.DiGraph
    assert list(graph.edges(data="weight")) == [(0, 1, 2.0), (1, 1, 1.0)]
    assert type(tensor.to_networkx(create_using=nx.Graph)) is nx.Graph
    np.testing.assert_array_equal(sl.from_networkx(graph).to_numpy(), tensor.to_numpy())
    with pytest.raises(sl.ShapeError, match="an adjacency matrix is square"):
        sl.zeros((2, 3), "csr").to_networkx()
