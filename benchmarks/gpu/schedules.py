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


def _tiles(tile: int, lanes: int) -> str:
    """A block takes so many entries, through shared memory, and some lanes add up each of the rows that lie in them."""
    products = f"precompute(A(i,j)*x(j),p1,pw,work) split(pw,m,tw,{THREADS}) unroll(m,{tile // THREADS}) parallelize(tw,GPUThread,NoRaces) "
    shares = f"split(p1,w,c,{tile * lanes // THREADS}) split(c,n,t,{lanes}) reorder(w,t,n)"
    tags = _tags("Atomics", "ParallelReduction", "ParallelReduction")
    return f"fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,p1,{tile}) {products}{shares} {tags}"


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
    **{f"tiles of {tile}, {lanes} lanes per row": _tiles(tile, lanes) for tile in (1024, 2048) for lanes in (2, 4, 8, 16)},
    PAPER: _papers_spmv(8, "precompute(A(i,j)*x(j),n,np,work) unroll(np,8) "),
    PLAIN_POSITIONS: _papers_spmv(8, ""),
}


def spmm(width: int) -> dict[str, str]:
    """Schedules for so many columns: lanes run over columns, each over as many as lie beside each other."""
    rows = {f"{lanes} lanes per row, by {each}": _spmm_rows(width, lanes, each) for lanes, each in _shares(width)}
    runs = {f"{lanes} lanes, by {each}, runs of {run}": _spmm_runs(width, lanes, each, run) for lanes, each, run in _run_shares(width)}
    return {**rows, **runs, PAPER: _papers_spmm(width)}


def _run_shares(width: int) -> list[tuple[int, int, int]]:
    """Lanes, neighbours and entries of runs: a warp that takes columns one by one, and fewer lanes that take several."""
    return [(LANES, 1, 64), (LANES, 1, 128), (LANES, 1, 256), (*_shares(width)[-1], 64)]


def _shares(width: int) -> list[tuple[int, int]]:
    """How lanes share columns: so many lanes, each of which takes so many neighbours at once."""
    return [(min(LANES, width // each), each) for each in (1, 2, 4)]


def _columns(name: str, width: int, lanes: int, each: int) -> tuple[str, str, str]:
    """The steps, the loops over lanes and over the columns of one, and how those are unrolled."""
    steps, turns = f"bound({name},cb,{width},MaxExact)", width // (lanes * each)
    if width == lanes:
        return f"bound({name},t,{width},MaxExact)", "t", ""
    if each == 1:
        return f"{steps} split(cb,v,t,{lanes})", "t,v", f" unroll(v,{turns})"
    if turns == 1:
        return f"{steps} split(cb,t,v,{each})", "t,v", f" unroll(v,{each})"
    return f"{steps} split(cb,u,c,{lanes * each}) split(c,t,v,{each})", "t,u,v", f" unroll(u,{turns}) unroll(v,{each})"


def _spmm_rows(width: int, lanes: int, each: int) -> str:
    """Some lanes have a row of the result in registers."""
    columns, over, unroll = _columns("k", width, lanes, each)
    cuts = f"split(i,b,w,{THREADS // lanes}) pos(j,p,A(i,j)) reorder(b,w,{over},p)"
    return f"{columns} {cuts}{unroll} unroll(p,4) {_tags('NoRaces', 'NoRaces', 'NoRaces')}"


def _runs(width: int, lanes: int, each: int, run: int, name: str) -> str:
    """Some lanes take so many entries, and have a row of the result in registers while a run of them lasts."""
    columns, over, unroll = _columns(name, width, lanes, each)
    cuts = f"split(p,b,p1,{run * THREADS // lanes}) split(p1,w,n,{run}) reorder(b,w,{over},n)"
    return f"{columns} {cuts}{unroll} unroll(n,4) {_tags('IgnoreRaces', 'IgnoreRaces', 'Atomics')}"


def _spmm_runs(width: int, lanes: int, each: int, run: int) -> str:
    return f"reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) {_runs(width, lanes, each, run, 'k')}"


def _papers_spmm(width: int) -> str:
    """Figure 18."""
    return f"reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) {_papers_runs(width, 'k')}"


def _papers_runs(width: int, columns: str) -> str:
    cuts = f"split(p,b,p1,128) split(p1,w,n,8) split({columns},free,t,32) bound(free,v,{width // LANES},MaxExact)"
    return f"{cuts} reorder(b,w,v,t,n) {_tags('IgnoreRaces', 'IgnoreRaces', 'Atomics')}"


def sddmm(width: int) -> dict[str, str]:
    """Schedules for so many columns: some lanes go through some entries, and add up what they find for each."""
    shares = dict.fromkeys((min(LANES, width // (words * each)), each) for each in (2, 4) for words in (1, 2))
    return {f"{lanes} lanes, by {each}, {run} entries": _sddmm(width, lanes, each, run) for lanes, each in shares for run in (8, 32)}


def _sddmm(width: int, lanes: int, each: int, run: int) -> str:
    columns, over, unroll = _columns("k", width, lanes, each)
    entries = f"fuse(i,j,f) pos(f,p,S(i,j)) split(p,b,p1,{run * THREADS // lanes}) split(p1,w,n,{run})"
    return f"{columns} {entries} reorder(b,w,n,{over}){unroll} unroll(n,4) {_tags('NoRaces', 'NoRaces', 'Temporary')}"


_ENTRIES = "reorder(i,k,l,j) fuse(k,l,kl) fuse(i,kl,f) pos(f,p,B(i,k,l))"


def mttkrp(width: int) -> dict[str, str]:
    """Schedules for so many columns, 32. With threads innermost every entry goes to the result by itself."""
    shares = _run_shares(width)
    runs = {f"{lanes} lanes, by {each}, runs of {run}": f"{_ENTRIES} {_runs(width, lanes, each, run, 'j')}" for lanes, each, run in shares}
    return {**runs, **{f"{ATOMIC}, {run}": _one_by_one(width, run) for run in (8, 64)}, PAPER: f"{_ENTRIES} {_papers_runs(width, 'j')}"}


def _one_by_one(width: int, run: int) -> str:
    cuts = f"bound(j,t,{width},MaxExact) split(p,b,p1,{run * WARPS}) split(p1,w,n,{run}) reorder(b,w,n,t)"
    return f"{_ENTRIES} {cuts} {_tags('IgnoreRaces', 'IgnoreRaces', 'Atomics')}"
