"""Connected components, by hand."""

import numpy as np

from spiel_cfrplus._utils.graphs import connected_components


def test_components_of_a_graph_by_hand():
    # 0 - 3 - 1 in any direction; 4 - 2; 5 alone.
    found = connected_components(6, np.array([3, 3, 4]), np.array([0, 1, 2])).tolist()
    assert [[found[node] == found[other] for other in range(6)] for node in (0, 2, 5)] == [
        [True, True, False, True, False, False],
        [False, False, True, False, True, False],
        [False, False, False, False, False, True],
    ]
