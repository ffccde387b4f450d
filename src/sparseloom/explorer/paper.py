"""The schedules of the paper's appendix, with small constants: name, statement, formats, steps."""

from __future__ import annotations

from typing import NamedTuple


class PaperSchedule(NamedTuple):
    """A statement and how the paper runs it."""

    name: str
    statement: str
    formats: str
    steps: str


SPMV = ("y(i) = A(i,j) * x(j)", "A:csr")
SPMM = ("C(i,k) = A(i,j) * B(j,k)", "A:csr")
MTTKRP = ("A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", "B:csf")

PAPER = (
    PaperSchedule("spmv_cpu", *SPMV, "split(i,i0,i1,16) reorder(i0,i1,j) parallelize(i0,CPUThread,NoRaces)"),
    PaperSchedule(
        "spmv_cpu_positions",
        *SPMV,
        "fuse(i,j,f) pos(f,fpos,A(i,j)) split(fpos,p0,p1,64) parallelize(p0,CPUThread,Atomics)",
    ),
    PaperSchedule(
        "spmv_gpu",
        *SPMV,
        """
        fuse(i,j,f) pos(f,fpos,A(i,j))
        split(fpos,block,fpos1,64) split(fpos1,warp,fpos2,32) split(fpos2,thread,thread_nz,4)
        reorder(block,warp,thread,thread_nz)
        precompute(A(i,j)*x(j),thread_nz,thread_nz_pre,precomputed)
        unroll(thread_nz_pre,4)
        parallelize(block,GPUBlock,IgnoreRaces) parallelize(warp,GPUWarp,IgnoreRaces) parallelize(thread,GPUThread,Atomics)
        """,
    ),
    PaperSchedule(
        "spmm_cpu",
        *SPMM,
        """
        split(i,i0,i1,16) pos(j,jpos,A(i,j)) split(jpos,jpos0,jpos1,8)
        reorder(i0,i1,jpos0,k,jpos1)
        parallelize(i0,CPUThread,NoRaces) parallelize(k,CPUVector,IgnoreRaces)
        """,
    ),
    PaperSchedule(
        "spmm_gpu",
        *SPMM,
        """
        reorder(i,j,k) fuse(i,j,f) pos(f,fpos,A(i,j))
        split(fpos,block,fpos1,64) split(fpos1,warp,nnz,8)
        split(k,dense_val_unbounded,thread,32) bound(dense_val_unbounded,dense_val,1,MaxExact)
        reorder(block,warp,dense_val,thread,nnz)
        parallelize(block,GPUBlock,IgnoreRaces) parallelize(warp,GPUWarp,IgnoreRaces) parallelize(thread,GPUThread,Atomics)
        """,
    ),
    PaperSchedule(
        "mttkrp_cpu",
        *MTTKRP,
        "pos(i,ipos,B(i,k,l)) split(ipos,ipos0,ipos1,16) reorder(ipos0,ipos1,k,l,j) parallelize(ipos0,CPUThread,NoRaces)",
    ),
    PaperSchedule(
        "mttkrp_gpu",
        *MTTKRP,
        """
        reorder(i,k,l,j) fuse(k,l,kl) fuse(i,kl,f) pos(f,fpos,B(i,k,l))
        split(fpos,block,fpos1,64) split(fpos1,warp,nnz,8)
        split(j,dense_val_unbounded,thread,32) bound(dense_val_unbounded,dense_val,1,MaxExact)
        reorder(block,warp,dense_val,thread,nnz)
        parallelize(block,GPUBlock,IgnoreRaces) parallelize(warp,GPUWarp,IgnoreRaces) parallelize(thread,GPUThread,Atomics)
        """,
    ),
    PaperSchedule(
        "spmv_gpu_thread_per_row",
        *SPMV,
        "split(i,block,thread,64) parallelize(block,GPUBlock,NoRaces) parallelize(thread,GPUThread,NoRaces)",
    ),
    PaperSchedule(
        "spmv_gpu_warp_per_row",
        *SPMV,
        """
        split(i,block,block_row,8) split(block_row,warp_row,warp,4)
        pos(j,jpos,A(i,j)) split(jpos,thread_nz,thread,32)
        reorder(block,warp,warp_row,thread,thread_nz)
        parallelize(block,GPUBlock,IgnoreRaces) parallelize(warp,GPUWarp,IgnoreRaces) parallelize(thread,GPUThread,Temporary)
        """,
    ),
    PaperSchedule(
        "spmv_gpu_no_unrolling",
        *SPMV,
        """
        fuse(i,j,f) pos(f,fpos,A(i,j))
        split(fpos,block,fpos1,64) split(fpos1,warp,fpos2,32) split(fpos2,thread,thread_nz,4)
        reorder(block,warp,thread,thread_nz)
        parallelize(block,GPUBlock,IgnoreRaces) parallelize(warp,GPUWarp,IgnoreRaces) parallelize(thread,GPUThread,Atomics)
        """,
    ),
    PaperSchedule("spmm_cpu_tiled", *SPMM, "pos(j,jpos,A(i,j)) split(jpos,jpos0,jpos1,8) reorder(i,jpos0,k,jpos1)"),
    PaperSchedule("spmm_cpu_untiled", *SPMM, ""),
)
