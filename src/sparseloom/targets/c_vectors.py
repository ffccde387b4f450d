"""Vectors in C: types as wide as the registers of the processor, loads that gather, and expressions for many lanes at once.

How many lanes a loop has is fixed by the loop; how many of them one register holds is for the C compiler to say. gcc keeps vectors that are
wider than the registers in memory: with types of 64 bytes, SpMM took 5 to 8 times as long on a processor with registers of 32.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.core.dtypes import INDEX_DTYPES, DType, is_integer
from sparseloom.core.trees import walk
from sparseloom.loops.lanes import gathering, has_vectors
from sparseloom.loops.nodes import Expr, Load, Op, Var
from sparseloom.targets.c_expr import INFIX, PLUS, UNARY, Expressions, Piece, c_type, infix, minus

VECTOR_BYTES = 64  # of the lanes that a loop does at once: as many as the largest registers hold
SMALLEST_REGISTER = 16
_REGISTERS = (64, 32, SMALLEST_REGISTER)

REGISTER_HELPER = {
    "REGISTER_BYTES": """
#if defined(__AVX512F__)
#define REGISTER_BYTES 64
#elif defined(__AVX2__)
#define REGISTER_BYTES 32
#else
#define REGISTER_BYTES 16
#endif
"""
}


def vector_helpers(dtype: DType) -> Iterator[tuple[str, str]]:
    """The vector type of a dtype, how many lanes it has, and its gathers. Integers are unsigned there: they wrap, as NumPy's do."""
    if not has_vectors(dtype):
        return
    shape = f"vector_size(REGISTER_BYTES), aligned({dtype.itemsize}), may_alias"
    yield f"vector_{dtype}", f"typedef {_element(dtype)} vector_{dtype} __attribute__(({shape}));"
    yield f"short_{dtype}", f"typedef {_element(dtype)} short_{dtype} __attribute__(({shape.replace('REGISTER_BYTES', '16')}));"
    yield f"lanes_{dtype}", f"enum {{ lanes_{dtype} = REGISTER_BYTES / {dtype.itemsize} }};"
    for kind in INDEX_DTYPES:
        yield f"gather_{dtype}_{kind}", _gather(dtype, kind)


def _gather(dtype: DType, kind: DType) -> str:
    """A function that reads where each of some neighbouring indices says, for every width of registers."""
    lines = [f"static inline vector_{dtype} gather_{dtype}_{kind}(const {c_type(dtype)} *from, const {c_type(kind)} *at) {{"]
    for directive, size in zip(("#if", "#elif", "#else"), _REGISTERS, strict=True):
        lines.append(directive if directive == "#else" else f"{directive} REGISTER_BYTES == {size}")
        lines.append(f"  return (vector_{dtype}){{{', '.join(f'from[at[{k}]]' for k in range(size // dtype.itemsize))}}};")
    return "\n".join([*lines, "#endif", "}"])


def _element(dtype: DType) -> str:
    return f"uint{8 * dtype.itemsize}_t" if is_integer(dtype) else c_type(dtype)


def infix_symbol(name: str) -> str:
    """The symbol of an operator that vectors have."""
    return INFIX[name][0]


class LaneExpressions(Expressions):
    """Prints expressions for a vector of lanes: what differs between lanes is a vector, the rest stays a scalar.

    Vectors are as wide as registers are, or short: as wide as the smallest.
    """

    def __init__(self, scalars: Expressions, lane: Var, dtype: DType, short: bool) -> None:
        super().__init__(scalars.names, scalars.indices, scalars.nonnegative)
        self._lane = lane
        self._dtype = dtype
        self._vector = f"{'short' if short else 'vector'}_{dtype}"

    def piece(self, expr: Expr, index: bool) -> Piece:
        """A load whose index has the lane in it reads a vector, and operators on vectors are C's own."""
        match expr:
            case Load(array, place) if self._differs(place):
                return self._load(self.names.array(array), place)
            case Op("negative", (operand,)) if self._differs(operand):
                return minus(self.piece(operand, False))
            case Op(name, args) if name in INFIX and self._differs(expr) and not index:
                return infix(name, [self.piece(arg, False) if self._differs(arg) else self._scalar(arg) for arg in args])
        return super().piece(expr, index)

    def _load(self, array: str, place: Expr) -> Piece:
        gathered = gathering(place, self._lane)
        if gathered is None:
            return Piece(f"*({self._vector} *)({array} + {self.index_piece(place).at(PLUS)})", UNARY)
        indices = f"{self.names.array(gathered.array)} + {self.index_piece(gathered.index).at(PLUS)}"
        return Piece(f"gather_{self._dtype}_{gathered.dtype}({array}, {indices})")

    def _scalar(self, expr: Expr) -> Piece:
        """What is the same for all lanes, as vectors of this dtype are combined with it."""
        piece = super().piece(expr, False)
        return Piece(f"({_element(self._dtype)}){piece.at(UNARY)}", UNARY) if is_integer(self._dtype) else piece

    def broadcast(self, expr: Expr) -> str:
        """A value for every lane, also where it is the same for all."""
        return self.value(expr) if self._differs(expr) else f"({self._vector}){{}} + {self._scalar(expr).at(PLUS)}"

    def _differs(self, expr: Expr) -> bool:
        return any(n == self._lane for n in walk(expr))
