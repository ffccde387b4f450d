"""The primitives, one file each. To add one, write its file, import it here, and give ``Schedule`` its method."""

from sparseloom.schedule.primitives.assemble import Assemble
from sparseloom.schedule.primitives.bound import Bound
from sparseloom.schedule.primitives.coord import Coord
from sparseloom.schedule.primitives.divide import Divide
from sparseloom.schedule.primitives.fuse import Fuse
from sparseloom.schedule.primitives.mergeby import MergeBy
from sparseloom.schedule.primitives.parallelize import Parallelize
from sparseloom.schedule.primitives.pos import Pos
from sparseloom.schedule.primitives.precompute import Precompute
from sparseloom.schedule.primitives.prefetch import Prefetch
from sparseloom.schedule.primitives.reorder import Reorder
from sparseloom.schedule.primitives.split import Split
from sparseloom.schedule.primitives.unroll import Unroll

__all__ = [
    "Assemble", "Bound", "Coord", "Divide", "Fuse", "MergeBy", "Parallelize", "Pos", "Precompute", "Prefetch", "Reorder", "Split", "Unroll",
]  # fmt: skip
