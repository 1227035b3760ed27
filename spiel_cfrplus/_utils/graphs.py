"""Connected components of graphs."""

from __future__ import annotations

import numpy as np


def connected_components(num_nodes: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """int (num_nodes,), a number for the component of each node of an undirected graph.

    Args:
      num_nodes: the number of nodes.
      first, second: int (E,), the two nodes of each edge.
    """
    from scipy import sparse  # takes a tenth of a second, which most commands do not need
    from scipy.sparse import csgraph

    graph = sparse.coo_array((np.ones(len(first), bool), (first, second)), shape=(num_nodes, num_nodes))
    _, component = csgraph.connected_components(graph, directed=False)
    return np.asarray(component)
