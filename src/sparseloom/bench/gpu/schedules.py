"""The schedules that are measured by name, as text. A user may write any of them."""

from __future__ import annotations

LANES, WARPS, THREADS = 32, 8, 256
PLANNED = "planned"
THREAD, WARP, BLOCK = "thread per row", "warp per row", "block per row"
PAPER, PLAIN_POSITIONS = "the paper's", "the paper's, not unrolled"
ATOMIC = "one atomic per nonzero"


def schedules_of(kernel: str, width: int) -> dict[str, str | None]:
    """Every named schedule of a kernel, by name, and the planner's choice."""
    named = {"spmv": lambda width: SPMV, "spmm": spmm, "sddmm": sddmm, "mttkrp": mttkrp}[kernel](width)
    return {PLANNED: None, **named}


def _tags(block: str, warp: str, thread: str) -> str:
    return f"parallelize(b,GPUBlock,{block}) parallelize(w,GPUWarp,{warp}) parallelize(t,GPUThread,{thread})"


def _lanes(count: int) -> str:
    """So many lanes for every row."""
    cuts = f"split(i,b,w,{THREADS // count}) pos(j,p,A(i,j)) split(p,q,t,{count}) reorder(b,w,t,q)"
    return f"{cuts} {_tags('NoRaces', 'NoRaces', 'Temporary')}"


def _staged(tile: int, threads: int, each: int) -> str:
    """A block takes so many entries: products go to shared memory, and threads add up runs of them."""
    products = f"precompute(A(i,j)*x(j),p1,pw,work) split(pw,n,tw,{threads}) unroll(n,{tile // threads}) parallelize(tw,GPUThread,NoRaces)"
    tags = "parallelize(b,GPUBlock,IgnoreRaces) parallelize(t,GPUThread,Atomics)"
    return f"fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,{tile}) {products} split(p1,t,q,{each}) {tags}"


def _papers_spmv(each: int, products: str) -> str:
    """Figure 16: a thread takes so many entries."""
    cuts = f"split(p,b,p1,{each * THREADS}) split(p1,w,p2,{each * LANES}) split(p2,t,n,{each}) reorder(b,w,t,n)"
    return f"fuse(i,j,f) pos(f,p,A(i,j)) {cuts} {products}{_tags('IgnoreRaces', 'IgnoreRaces', 'Atomics')}"


SPMV = {
    THREAD: "split(i,b,t,256) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)",
    "4 lanes per row": _lanes(4),
    "8 lanes per row": _lanes(8),
    WARP: _lanes(LANES),
    BLOCK: "pos(j,p,A(i,j)) divide(p,w,p1,32) split(p1,n,t,32) reorder(i,w,t,n) "
    "parallelize(i,GPUBlock,NoRaces) parallelize(w,GPUWarp,Temporary) parallelize(t,GPUThread,Temporary)",
    "staged tiles of 1792": _staged(1792, 256, 7),
    "staged tiles of 3840": _staged(3840, 256, 15),
    PAPER: _papers_spmv(8, "precompute(A(i,j)*x(j),n,np,work) unroll(np,8) "),
    PLAIN_POSITIONS: _papers_spmv(8, ""),
}


def spmm(width: int) -> dict[str, str]:
    """Schedules for so many columns, a multiple of 32. Lanes run over columns."""
    rows = {"warp per row": _spmm_rows(width, 1), "warp per row, unrolled": _spmm_rows(width, 4)}
    return {**rows, **{f"runs of {run}": _spmm_runs(width, run) for run in (32, 64, 128)}, PAPER: _papers_spmm(width)}


def _spmm_rows(width: int, unrolled: int) -> str:
    """A warp has a row of the result in registers."""
    steps = f" unroll(p,{unrolled})" if unrolled > 1 else ""
    if width == LANES:
        cuts = f"bound(k,t,{width},MaxExact) split(i,b,w,{WARPS}) pos(j,p,A(i,j)) reorder(b,w,t,p)"
    else:
        columns = f"bound(k,kb,{width},MaxExact) split(kb,v,t,32)"
        cuts = f"{columns} split(i,b,w,{WARPS}) pos(j,p,A(i,j)) reorder(b,w,t,v,p) unroll(v,{width // LANES})"
    return f"{cuts}{steps} {_tags('NoRaces', 'NoRaces', 'NoRaces')}"


def _runs(width: int, run: int, columns: str) -> str:
    """A warp takes so many entries, and has a row of the result in registers while a run of them lasts."""
    tags = _tags("IgnoreRaces", "IgnoreRaces", "Atomics")
    cuts = f"split(p,b,p1,{run * WARPS}) split(p1,w,n,{run})"
    if width == LANES:
        return f"bound({columns},t,{width},MaxExact) {cuts} reorder(b,w,t,n) unroll(n,4) {tags}"
    bound = f"bound({columns},cb,{width},MaxExact) split(cb,v,t,32)"
    return f"{bound} {cuts} reorder(b,w,t,n,v) unroll(v,{width // LANES}) unroll(n,4) {tags}"


def _spmm_runs(width: int, run: int) -> str:
    return f"reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) {_runs(width, run, 'k')}"


def _papers_spmm(width: int) -> str:
    """Figure 18."""
    return f"reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) {_papers_runs(width, 'k')}"


def _papers_runs(width: int, columns: str) -> str:
    cuts = f"split(p,b,p1,128) split(p1,w,n,8) split({columns},free,t,32) bound(free,v,{width // LANES},MaxExact)"
    return f"{cuts} reorder(b,w,v,t,n) {_tags('IgnoreRaces', 'IgnoreRaces', 'Atomics')}"


def sddmm(width: int) -> dict[str, str]:
    """Schedules for so many columns: some lanes for every entry, which add up what they find."""
    return {f"{lanes} lanes per entry": _lanes_per_entry(width, lanes) for lanes in (8, 16, 32) if width % lanes == 0}


def _lanes_per_entry(width: int, lanes: int) -> str:
    entries = f"fuse(i,j,f) pos(f,p,S(i,j)) split(p,b,w,{THREADS // lanes})"
    tags = _tags("NoRaces", "NoRaces", "Temporary")
    if width == lanes:
        return f"{entries} bound(k,t,{width},MaxExact) {tags}"
    return f"{entries} bound(k,kb,{width},MaxExact) split(kb,n,t,{lanes}) reorder(b,w,t,n) unroll(n,{width // lanes}) {tags}"


_ENTRIES = "reorder(i,k,l,j) fuse(k,l,kl) fuse(i,kl,f) pos(f,p,B(i,k,l))"


def mttkrp(width: int) -> dict[str, str]:
    """Schedules for so many columns, 32. With threads innermost every entry goes to the result by itself."""
    runs = {f"runs of {run}": f"{_ENTRIES} {_runs(width, run, 'j')}" for run in (32, 64, 128)}
    return {**runs, **{f"{ATOMIC}, {run}": _one_by_one(width, run) for run in (8, 64)}, PAPER: f"{_ENTRIES} {_papers_runs(width, 'j')}"}


def _one_by_one(width: int, run: int) -> str:
    cuts = f"bound(j,t,{width},MaxExact) split(p,b,p1,{run * WARPS}) split(p1,w,n,{run}) reorder(b,w,n,t)"
    return f"{_ENTRIES} {cuts} {_tags('IgnoreRaces', 'IgnoreRaces', 'Atomics')}"
