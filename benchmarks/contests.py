"""Which kernels are measured, with which widths, on which kind of operands, and what we want to reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import chains, kernels, stand_ins
from benchmarks.stand_ins import Make
from benchmarks.task import Task
from sparseloom.tensor.tensor import Tensor

MOST_NUMBERS = 40_000_000  # in the dense operands of one kernel


@dataclass(frozen=True)
class Contest:
    """One kernel: ``operands`` names the set it runs on, and ``widths`` how many columns its dense operands have.

    ``why`` says what is known of the places where others are faster, unless the schedule has the step ``mended``.
    """

    name: str
    title: str
    operands: str
    task: Callable[[Tensor, int], Task]
    widths: tuple[int, ...] = (0,)
    why: str = ""
    mended: str = ""

    def named(self, width: int) -> str:
        """The title with a width."""
        return f"{self.title}, {width} columns" if width else self.title

    def fits(self, tensor: Tensor, width: int) -> bool:
        """Whether dense operands of this width fit into the memory that a benchmark should take."""
        return sum(tensor.shape) * width <= MOST_NUMBERS


FOR_EVERY_PAIR = "one nest multiplies for every pair of columns; a sum for each entry first would do"
CONTESTS = {
    contest.name: contest
    for contest in (
        Contest("spmv", "SpMV", "matrices", kernels.spmv),
        Contest("spmm", "SpMM", "matrices", kernels.spmm, (32, 128)),
        Contest("sddmm", "SDDMM", "matrices", kernels.sddmm, (32, 128)),
        Contest("mttkrp", "MTTKRP", "tensors", kernels.mttkrp, (16, 32)),
        Contest("ttv", "TTV", "tensors", kernels.ttv),
        Contest("ttm", "TTM", "tensors", kernels.ttm, (16,)),
        Contest("inner", "sum B(i,j,k) a(i) b(j) c(k)", "tensors", kernels.inner),
        Contest("spgemm", "SpGEMM, A A", "squares", kernels.product),
        Contest("add", "A + B", "matrices", kernels.add),
        Contest("add_three", "A + B + C", "matrices", kernels.add_three),
        Contest("fused", "(A + B) x", "matrices", kernels.fused),
        Contest("masked", "masked product (L L) * L", "squares", kernels.masked),
        Contest("low_rank", "ij,jr,rk,k->i", "links", chains.low_rank, (16,)),
        Contest("powers", "ij,jk,kl,l->i", "links", chains.powers),
        Contest("gcn", "graph layer A X W", "links", chains.narrowing, (16,)),
        Contest("gcn_wide", "graph layer A X W, widening", "links", chains.widening, (16,)),
        Contest("attention", "masked attention (M * (Q K)) V", "links", kernels.attention, (32,)),
        Contest("two_matrices", "ij,jk,k->i", "links", chains.two_matrices),
        Contest("scaled", "ij,j,jk,k->i", "links", chains.scaled),
        Contest("more_powers", "ij,jk,kl,lm,m->i", "links", chains.more_powers),
        Contest("scaled_twice", "ij,j,jk,k,kl,l->i", "links", chains.scaled_twice),
        Contest("mttkrp4", "MTTKRP of order four", "tensors of four", kernels.mttkrp4, (16,)),
        Contest("sampled_product", "SDDMM into a dense product", "links", kernels.sampled_product, (32,), FOR_EVERY_PAIR, "precompute"),
        Contest("min_plus", "min-plus SpMV", "matrices", kernels.min_plus),
        Contest("hadamard", "(A * B) x, element by element", "matrices", kernels.hadamard),
        Contest("block_spmm", "BCSR SpMM", "blocked", kernels.block_spmm, (32,)),
    )
}
UNNAMED = ("mttkrp4", "sampled_product", "min_plus", "hadamard", "block_spmm")  # no table elsewhere has them
Sets = dict[str, dict[str, Make]]


def usual_sets() -> Sets:
    """What a whole run is on."""
    links: dict[str, Make] = {
        "links_1000": lambda: stand_ins.uniform(1_000, 1_000, 5_000),
        "links_2000": lambda: stand_ins.uniform(2_000, 2_000, 40_000),
    }
    blocked: dict[str, Make] = {"blocks": stand_ins.matrices()["blocks"]}
    return _sets(stand_ins.matrices(), stand_ins.squares(), stand_ins.tensors(), stand_ins.tensors_of_four(), links, blocked)


def quick_sets() -> Sets:
    """What a quick look is on."""
    matrices, squares = stand_ins.small_matrices(), stand_ins.small_squares()
    some = {"small_power_law": squares["small_power_law"]}
    links: dict[str, Make] = {"links_1000": lambda: stand_ins.uniform(1_000, 1_000, 5_000)}
    blocked: dict[str, Make] = {"quick_blocks": lambda: stand_ins.in_blocks(2_000, 4, 8)}
    return _sets(matrices, some, stand_ins.small_tensors(), stand_ins.small_tensors_of_four(), links, blocked)


def toy_sets() -> Sets:
    """What only shows that everything runs."""
    toys = stand_ins.toy_matrices()
    blocked: dict[str, Make] = {"toy_blocks": lambda: stand_ins.in_blocks(10, 4, 3)}
    return _sets(toys, toys, stand_ins.toy_tensors(), stand_ins.toy_tensors_of_four(), toys, blocked)


def _sets(*sets: dict[str, Make]) -> Sets:
    return dict(zip(("matrices", "squares", "tensors", "tensors of four", "links", "blocked"), sets, strict=True))
