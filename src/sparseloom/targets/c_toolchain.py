"""How C becomes a library: by gcc or clang, with OpenMP if the compiler has it.

``$CFLAGS`` is not read: a stray ``-ffast-math`` would change NaN results and, as gcc 12 links it, flush denormals to zero in the whole
process.
"""

from __future__ import annotations

import sys

from sparseloom.targets.toolchain import OpenMP, Toolchain

_FLAGS = (
    "-fno-fast-math",  # first: undoes a -ffast-math inside $CC, and leaves the flags below in force
    *"-std=gnu11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math".split(),
    # gcc 12 jams two rounds of a sparse loop into one and then gathers what lies side by side: MTTKRP took up to 1.4x as long.
    # A short loop that straddles two cache lines took 1.2x as long (SpMV), so loops are aligned.
    *"-fno-unroll-loops -fno-loop-unroll-and-jam -falign-loops=32".split(),
    *"-fcx-fortran-rules -fPIC -shared -pipe".split(),
    # A library takes two mappings instead of five; a process may have some 65,000.
    *("-Wl,-z,noseparate-code -Wl,-z,norelro".split() if sys.platform == "linux" else ()),
)
_INSTALL = """\
  help: install one, for example
    Debian, Ubuntu:  apt install gcc libc6-dev
    Fedora:          dnf install gcc
    macOS:           xcode-select --install
    conda:           conda install -c conda-forge c-compiler
  or name one in $CC; target="interpret" needs no compiler"""
_THREADS = """\
int omp_get_max_threads(void);
int probe(void) {
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  threads++;
  return threads > omp_get_max_threads();
}
"""
C_TOOLCHAIN = Toolchain(
    language="C",
    programs=("gcc", "clang", "cc"),
    variable="CC",
    flags=_FLAGS,
    essential=("-std=gnu11", "-O3", "-fPIC", "-shared"),
    suffix=".c",
    probe="int probe;\n",
    libraries=("-lm",),
    openmp=OpenMP(("#pragma omp", "omp_get_max_threads"), _THREADS),
    install=_INSTALL,
    hints=(("stdint.h", "the headers of the C library are missing: install libc6-dev (Debian) or glibc-devel (Fedora)"),),
)
