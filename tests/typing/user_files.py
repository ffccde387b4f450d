"""Files and other libraries."""

from pathlib import Path
from typing import assert_type

import sparseloom as sl


def converted(path: Path) -> sl.Tensor:
    t = sl.read(path, format="csc")
    sl.write(path.with_suffix(".npz"), t)
    assert_type(sl.asarray(t.to_scipy()), sl.Tensor)
    sl.set_threads(2)
    return sl.from_coo([[0, 1], [1, 0]], [1.0, 2.0], shape=t.shape)
