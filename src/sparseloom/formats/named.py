"""The formats that have names.

dense(n)     d d ...        every coordinate
csr  csc     d s            rows (columns) of compressed coordinates
dcsr dcsc    s s            the same where most rows (columns) are empty
coo(n)       u q ...        one tuple of coordinates per entry
csf(n)       s s ...        a tree of compressed levels
bcsr(b)      d s d d        rows of dense blocks
ell          d p            rows padded to one width
dia          d o            diagonals
"""

from __future__ import annotations

from sparseloom.core.errors import FormatError
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels import Compressed, Dense, Offset, Padded, Singleton

csr = Format((Dense(), Compressed()), (0, 1))
csc = Format((Dense(), Compressed()), (1, 0))
dcsr = Format((Compressed(), Compressed()), (0, 1))
dcsc = Format((Compressed(), Compressed()), (1, 0))
ell = Format((Dense(), Padded()), (0, 1))
dia = Format((Dense(), Offset()), (0, 1))


def dense(order: int) -> Format:
    """Every coordinate stored, the last mode fastest (C order).

    >>> sl.dense(2).text
    'dd'
    """
    return _natural((Dense(),) * _order(order, "dense"))


def coo(order: int = 2) -> Format:
    """A sorted list of coordinate tuples. Of one mode, that is one compressed level.

    >>> sl.coo(3).text, sl.coo().text
    ('uqq', 'uq')
    """
    if _order(order, "coo") < 2:
        return csf(order)
    first = Compressed(unique=False)
    return _natural((first, *(Singleton(unique=False),) * (order - 2), Singleton()))


def csf(order: int = 3) -> Format:
    """A tree of compressed levels, in the order of the modes.

    >>> sl.csf(3).text
    'sss'
    """
    return _natural((Compressed(),) * _order(order, "csf"))


def entries(order: int) -> Format:
    """What entries are stored in where nobody says otherwise: csr for a matrix, else csf."""
    return csr if order == 2 else csf(order)


def bcsr(block: int | tuple[int, int]) -> Format:
    """Compressed rows of dense blocks, each stored row by row. Blocks at the edge of the matrix are filled up.

    >>> sl.asarray(np.eye(4), format=sl.bcsr((2, 2))).format.text
    'dsdd:0,1,0,1/2,2'
    """
    rows, columns = (block, block) if isinstance(block, int) else block
    return Format((Dense(), Compressed(), Dense(), Dense()), (0, 1, 0, 1), (rows, columns))


def name_of(format: Format) -> str:
    """The familiar name of a format (``csr``, ``coo(3)``, ``bcsr(2,3)``), or else its letters (``sd:1,0``)."""
    return str(format)


def _natural(levels: tuple[Level, ...]) -> Format:
    """These levels over the modes in their own order."""
    return Format(levels, tuple(range(len(levels))))


def _order(order: int, name: str) -> int:
    """A number of modes, at least 0."""
    if not isinstance(order, int) or order < 0:
        raise FormatError(f"{name}({order!r}): the order of a tensor is a whole number, at least 0")
    return order
