"""Vectors in C: types as wide as the registers of the processor, loads that gather, and expressions for many lanes at once.

How many lanes a loop has is fixed by the loop; how many of them one register holds is for the C compiler to say. gcc keeps vectors that are
wider than the registers in memory: with types of 64 bytes, SpMM took 5 to 8 times as long on a processor with registers of 32.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.core.dtypes import INDEX_DTYPES, DType, is_half, is_integer
from sparseloom.core.trees import walk
from sparseloom.loops.lanes import gathering, has_vectors
from sparseloom.loops.nodes import Array, Cast, Expr, Load, MemorySpace, Op, Var
from sparseloom.targets.c_expr import INFIX, PLUS, UNARY, Expressions, Piece, c_type, infix, minus

VECTOR_BYTES = 64  # of the lanes that a loop does at once: as many as the largest registers hold
SMALLEST_REGISTER = 16
_REGISTERS = (64, 32, SMALLEST_REGISTER)
EXTREMES = {"minimum": "<", "maximum": ">"}


def vector_helpers(dtype: DType) -> Iterator[tuple[str, str]]:
    """The vector type of a dtype, how many lanes it has, and its gathers. Integers are unsigned there: they wrap, as NumPy's do."""
    if not has_vectors(dtype):
        return
    shape = f"vector_size(REGISTER_BYTES), aligned({dtype.itemsize}), may_alias"
    yield f"vector_{dtype}", f"typedef {_element(dtype)} vector_{dtype} __attribute__(({shape}));"
    yield f"short_{dtype}", f"typedef {_element(dtype)} short_{dtype} __attribute__(({shape.replace('REGISTER_BYTES', '16')}));"
    yield f"lanes_{dtype}", f"enum {{ lanes_{dtype} = REGISTER_BYTES / {dtype.itemsize} }};"
    index = f"int{8 * dtype.itemsize}_t"
    for vector, order, size in ((f"vector_{dtype}", f"order_{dtype}", "REGISTER_BYTES"), (f"short_{dtype}", f"short_order_{dtype}", "16")):
        yield order, f"typedef {index} {order} __attribute__((vector_size({size})));"
        for name, sign in EXTREMES.items():
            yield f"{name}_{vector}", _extreme(name, sign, dtype, vector, order)
    yield f"first_{dtype}", _first(dtype)
    yield f"some_{dtype}", _some(dtype)
    for kind in INDEX_DTYPES:
        yield f"gather_{dtype}_{kind}", _gather(dtype, kind)
        yield f"gather_some_{dtype}_{kind}", _gather_some(dtype, kind)


def _first(dtype: DType) -> str:
    """A function that takes some lanes, the first so many, from one vector and the others from another."""
    index, order = f"int{8 * dtype.itemsize}_t", f"order_{dtype}"
    lines = [f"static inline vector_{dtype} first_{dtype}(vector_{dtype} taken, vector_{dtype} others, int64_t count) {{"]
    for directive, size in zip(("#if", "#elif", "#else"), _REGISTERS, strict=True):
        lines.append(directive if directive == "#else" else f"{directive} REGISTER_BYTES == {size}")
        lines.append(f"  {order} lanes = {{{', '.join(map(str, range(size // dtype.itemsize)))}}};")
    return "\n".join([
        *lines, "#endif", f"  {order} mine = lanes < ({index})count;",
        f"  return (vector_{dtype})((mine & ({order})taken) | (~mine & ({order})others));", "}",
    ])  # fmt: skip


def _extreme(name: str, sign: str, dtype: DType, vector: str, order: str) -> str:
    """The smaller or the larger of two numbers in every lane; what is no number stays. Integers are compared with their signs.

    A reduction waits for ``a`` from one value to the next, so that tests of ``b`` alone, and one instruction for the rest, are quickest.
    """
    compared = f"({order})b {sign} ({order})a" if dtype.kind == "i" else f"b {sign} a"
    theirs = f"({order})({compared})" + (f" | ({order})(b != b)" if dtype.kind == "f" else "")
    chosen = [f"  {order} theirs = {theirs};", f"  return ({vector})((theirs & ({order})b) | (~theirs & ({order})a));"]
    if dtype.kind == "f":
        kind, (bits, rounding) = "pd" if dtype.itemsize == 8 else "ps", (512, ", 4") if vector.startswith("vector") else (128, "")
        is_number = f"__builtin_ia32_cmp{kind}{bits}_mask(b, b, 7, -1{rounding})"
        masked = f"__builtin_ia32_{name[:3]}{kind}{bits if rounding else ''}_mask(b, a, b, {is_number}{rounding})"
        chosen = ["#if HAS_MASKS", f"  return {masked};", "#else", *chosen, "#endif"]
    return "\n".join([f"static inline {vector} {name}_{vector}({vector} a, {vector} b) {{", *chosen, "}"])


def _gather(dtype: DType, kind: DType) -> str:
    """A function that reads where each of some neighbouring indices says, for every width of registers.

    gcc must not know that the mask has all lanes: it would not clear the register first, and each gather would wait for the one before.
    """
    lines = [
        f"static inline vector_{dtype} gather_{dtype}_{kind}(const {c_type(dtype)} *from, const {c_type(kind)} *at) {{", "#if HAS_MASKS",
        f"  unsigned all = {_all_lanes(dtype)};", '  __asm__("" : "+r"(all));',
        f"  return {_masked_gather(dtype, kind, 'all', _all_lanes(dtype))};",
    ]  # fmt: skip
    for directive, size in zip(("#elif", "#elif", "#else"), _REGISTERS, strict=True):
        lines.append(directive if directive == "#else" else f"{directive} REGISTER_BYTES == {size}")
        lines.append(f"  return (vector_{dtype}){{{', '.join(f'from[at[{k}]]' for k in range(size // dtype.itemsize))}}};")
    return "\n".join([*lines, "#endif", "}"])


def _some(dtype: DType) -> str:
    """A function that loads adjacent elements of which only the first ones are used; all of them can be read."""
    head = f"static inline vector_{dtype} some_{dtype}(const {c_type(dtype)} *from, int64_t count) {{"
    masked = f"(vector_{dtype}){_masked_load('from', dtype, 64 // dtype.itemsize, f'lanes_below(count, {_all_lanes(dtype)})')}"
    return "\n".join([head, "#if HAS_MASKS", f"  return {masked};", "#else", f"  return *(const vector_{dtype} *)from;", "#endif", "}"])


def _gather_some(dtype: DType, kind: DType) -> str:
    """As a gather, where only the first so many lanes matter."""
    taken, masked = f"const {c_type(dtype)} *from, const {c_type(kind)} *at, int64_t count", _masked_gather(dtype, kind, "some", "some")
    head = f"static inline vector_{dtype} gather_some_{dtype}_{kind}({taken}) {{"
    mask = f"  unsigned some = lanes_below(count, {_all_lanes(dtype)});"
    return "\n".join([
        head, "#if HAS_MASKS", mask, f"  return {masked};", "#else", f"  return gather_{dtype}_{kind}(from, at);", "#endif", "}",
    ])  # fmt: skip


def _all_lanes(dtype: DType) -> str:
    return hex((1 << (64 // dtype.itemsize)) - 1)


def _masked_load(at: str, dtype: DType, lanes: int, mask: str) -> str:
    """So many neighbouring numbers, those that a mask has; the others are 0."""
    name, vector = {
        (4, 8): ("loaddqusi256", "eight_int32"), (4, 16): ("loaddqusi512", "sixteen_int32"), (8, 8): ("loaddqudi512", "eight_int64"),
    }[dtype.itemsize, lanes]  # fmt: skip
    return f"__builtin_ia32_{name}_mask((const {'int' if dtype.itemsize == 4 else 'long long'} *)({at}), ({vector}){{}}, {mask})"


def _masked_gather(dtype: DType, kind: DType, mask: str, read: str) -> str:
    """The lanes of a gather that a mask has; the others are 0. ``read`` has the indices that can be read, the same or more.

    Sixteen lanes with indices of 8 bytes come in halves.
    """
    vector = "eight_int64" if dtype.itemsize == 8 else "sixteen_int32"
    if dtype.itemsize == 8:
        name = "gathersiv8di" if kind.itemsize == 4 else "gatherdiv8di"
        indices = _masked_load("at", kind, 8, read)
        return f"(vector_{dtype})__builtin_ia32_{name}(({vector}){{}}, from, {indices}, {mask}, 8)"
    if kind.itemsize == 4:
        return f"(vector_{dtype})__builtin_ia32_gathersiv16si(({vector}){{}}, from, {_masked_load('at', kind, 16, read)}, {mask}, 4)"
    halves = [
        f"__builtin_ia32_gatherdiv16si((eight_int32){{}}, from, {_masked_load(f'at + {first}', kind, 8, half.format(read))}, "
        f"{half.format(mask)}, 4)"
        for first, half in ((0, "({} & 0xff)"), (8, "({} >> 8)"))
    ]
    order = ", ".join(map(str, range(16)))
    return f"(vector_{dtype})__builtin_shufflevector({halves[0]}, {halves[1]}, {order})"


def _element(dtype: DType) -> str:
    return f"uint{8 * dtype.itemsize}_t" if is_integer(dtype) else c_type(dtype)


def infix_symbol(name: str) -> str:
    """The symbol of an operator that vectors have."""
    return INFIX[name][0]


class LaneExpressions(Expressions):
    """Prints expressions for a vector of lanes: what differs between lanes is a vector, the rest stays a scalar.

    Vectors are as wide as registers are, or short: as wide as the smallest.
    """

    def __init__(self, scalars: Expressions, lane: Var, dtype: DType, short: bool, count: str | None = None) -> None:
        super().__init__(scalars.names, scalars.indices, scalars.nonnegative)
        self._lane = lane
        self._dtype = dtype
        self._vector = f"{'short' if short else 'vector'}_{dtype}"
        self._count = count  # how many lanes matter, if not all do

    def piece(self, expr: Expr, index: bool) -> Piece:
        """A load whose index has the lane in it reads a vector, and operators on vectors are C's own."""
        match expr:
            case Load(array, place) if self._differs(place):
                return self._load(array, place)
            case Cast(Load(array, place), _) if self._differs(place) and is_half(array.dtype):
                width = self._vector.partition("_")[0]
                return Piece(f"{width}_of_{array.dtype}({self.names.array(array)} + {self.index_piece(place).at(PLUS)})")
            case Op("negative", (operand,)) if self._differs(operand):
                return minus(self.piece(operand, False))
            case Op(name, args) if name in INFIX and self._differs(expr) and not index:
                return infix(name, [self.piece(arg, False) if self._differs(arg) else self._scalar(arg) for arg in args])
            case Op(("minimum" | "maximum") as name, (left, right)) if self._differs(expr) and not index:
                return Piece(f"{name}_{self._vector}({self.broadcast(left)}, {self.broadcast(right)})")
        return super().piece(expr, index)

    def _load(self, array: Array, place: Expr) -> Piece:
        gathered, name = gathering(place, self._lane), self.names.array(array)
        if gathered is not None:
            indices = f"{self.names.array(gathered.array)} + {self.index_piece(gathered.index).at(PLUS)}"
            if self._count is not None:
                return Piece(f"gather_some_{self._dtype}_{gathered.dtype}({name}, {indices}, {self._count})")
            return Piece(f"gather_{self._dtype}_{gathered.dtype}({name}, {indices})")
        where = f"{name} + {self.index_piece(place).at(PLUS)}"
        if self._count is not None and array.space is not MemorySpace.LOCAL:
            return Piece(f"some_{self._dtype}({where}, {self._count})")
        return Piece(f"*({self._vector} *)({where})", UNARY)

    def rounding(self, array: Array, place: Expr, value: Expr) -> str:
        """What rounds a value of every lane to a half and stores it."""
        where = f"{self.names.array(array)} + {self.index_piece(place).at(PLUS)}"
        return f"{self._vector.partition('_')[0]}_to_{array.dtype}({where}, {self.broadcast(value)})"

    def _scalar(self, expr: Expr) -> Piece:
        """What is the same for all lanes, as vectors of this dtype are combined with it."""
        piece = super().piece(expr, False)
        return Piece(f"({_element(self._dtype)}){piece.at(UNARY)}", UNARY) if is_integer(self._dtype) else piece

    def broadcast(self, expr: Expr) -> str:
        """A value for every lane, also where it is the same for all."""
        return self.value(expr) if self._differs(expr) else f"({self._vector}){{}} + {self._scalar(expr).at(PLUS)}"

    def _differs(self, expr: Expr) -> bool:
        return any(n == self._lane for n in walk(expr))
