"""The matrices and tensors of `make bench-results`: real ones where they are at hand, and generated ones."""

from __future__ import annotations

from pathlib import Path

from benchmarks import stand_ins
from benchmarks.stand_ins import Make, banded, power_law, real, small_squares, toy_tensors, uniform

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL_MATRICES = (
    "rustdoc_term_doc.npz",  # terms by documents
    "epfl_hyp_netlist.mtx.gz",  # a circuit, short rows
    "rustdoc_web.mtx.gz",  # links, power law
    "copter2.mtx.gz",  # a mesh
    "wheelset_elasticity.npz",  # a mesh with blocks of three
    "debian_dir_pkg.mtx.gz",  # very skewed rows
    "wordnet_lemma_synset.mtx.gz",  # one or two entries a row
    "lp_fit2d.mtx.gz",  # 25 rows, each long
)
REAL_SQUARES = (
    "epfl_hyp_netlist.mtx.gz",
    "copter2.mtx.gz",
    "wheelset_elasticity.npz",
    "debian_deps.mtx.gz",  # dependencies, half of the rows empty
    "astro-ph.mtx.gz",  # co-authors, power law
    "pushpull.mtx.gz",
    "cage10.mtx.gz",
    "memplus.mtx.gz",  # a memory circuit, skewed rows
    "wiki-Vote.mtx.gz",  # votes, power law
    "bcsstk13.mtx.gz",  # a mesh, small, with long rows
)
REAL_TENSORS = (
    "debian_dir_ext_pkg.tns.gz",
    "speech_word_word_word.tns.gz",
    "wordnet_synset_rel_synset.tns.gz",
    "flights_orig_dest_delay.tns.gz",
)


def matrices() -> dict[str, Make]:
    """Thirteen matrices, or the five generated ones and three more where the real ones are missing."""
    found = real(REAL_DATA, REAL_MATRICES)
    generated: dict[str, Make] = {
        "fem_band": lambda: banded(200_000, 27),
        "uniform": lambda: uniform(200_000, 200_000, 4_000_000),
        "power_law": lambda: power_law(200_000, 3_000_000),
        "short_rows": lambda: uniform(1_000_000, 1_000_000, 2_000_000),
        "long_rows": lambda: uniform(100, 100_000, 1_000_000),
    }
    instead: dict[str, Make] = {
        "narrow_band": lambda: banded(500_000, 5),
        "in_cache": lambda: uniform(10_000, 10_000, 100_000),
        "wide": lambda: uniform(5_000, 500_000, 2_000_000),
    }
    return {**found, **generated, **({} if found else instead)}


def squares() -> dict[str, Make]:
    """Square matrices whose product with themselves stays below a hundred million multiplications."""
    return {**real(REAL_DATA, REAL_SQUARES), **stand_ins.squares()}


def tensors() -> dict[str, Make]:
    """Third-order tensors: four real ones where they are at hand, and three generated ones."""
    return {**real(REAL_DATA, REAL_TENSORS), **stand_ins.tensors()}


def missing() -> list[str]:
    """A line for each real matrix or tensor that is not at hand, or one for all of them."""
    if not REAL_DATA.exists():
        return ["The real matrices and tensors are left out: there is no ../shared/data."]
    names = dict.fromkeys((*REAL_MATRICES, *REAL_SQUARES, *REAL_TENSORS))
    return [f"{name} is left out: it is not in ../shared/data." for name in names if not (REAL_DATA / name).exists()]


__all__ = ["matrices", "missing", "small_squares", "squares", "tensors", "toy_tensors"]
