"""One game in several processes, which may run on several machines: it is walked, compiled and iterated in parts.

Data first. Below a *cut* through the game tree the histories fall into groups that share no infostate.

* The *cut* is a set of histories, none of which follows another. It may be at different plies in different places.
* The *top tree* is the game above the cut. Each process has it; it is small.
* A *part* is a set of histories at the cut with all histories below them; no infostate has histories in two parts or both in a
  part and in the top tree. It contains, for each player, the player's infostates below the cut, and the payoffs of its terminal
  histories. There are more parts than processes; each part is dealt to one process.
* A *boundary sequence* of a part is the last sequence of a player at one of its histories at the cut, a sequence of the top
  tree. In the arrays of a part the boundary sequences are those of the player's root, the infostate that kernels skip, so that
  the kernels of the whole game iterate on parts.

An iteration exchanges two vectors over boundary sequences. *Reach* goes down: the reach of a boundary sequence in the top tree
is its reach in the part. *Values* go up: the counterfactual values that the update of a part adds to its boundary sequences are
added to the payoff gradient of the top tree. So an update of one player is

1. in each part: payoff gradient, then the update of all infostates, from the last to the first;
2. one exchange: each process receives the values of all boundary sequences (`Allgatherv` of MPI);
3. in the top tree: payoff gradient, plus these values in the order of the parts, then the update and the new strategy;
4. in each part: the reach of the boundary sequences is read from the top tree, then the new strategy.

Each process repeats step 3, instead of one that would send the result to the others in a second message. With alternating
updates there is one exchange for each player, with simultaneous ones one for all of them. The messages are the same for any
number of processes, and so are the sums: the results do not depend on which process has which part.

The numbers differ from those of one process without parts by the rounding of one sum: the value of a sequence at the boundary
is a sum over several parts and the top tree, and its terms are added part by part instead of in the order of the game. All
other sums have the same terms in the same order.

The vocabulary is that of `solving.partition`, which divides a compiled game among threads.
"""

from spiel_cfrplus.distributed.communicator import Alone, Communicator, MPICommunicator
from spiel_cfrplus.distributed.compilation import DistributedGame, PartError, compile_in_parts
from spiel_cfrplus.distributed.session import DistributedSelfPlay, Values

__all__ = [
    "Alone",
    "Communicator",
    "DistributedGame",
    "DistributedSelfPlay",
    "MPICommunicator",
    "PartError",
    "Values",
    "compile_in_parts",
]
