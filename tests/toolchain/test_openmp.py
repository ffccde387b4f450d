"""Compilers with OpenMP, with it under another flag, and without it: all of them give results, and one thread is reported once."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
REFUSED = "clang: error: unsupported option '-fopenmp'"
# Rejects -fopenmp as Apple's clang does; behind -Xclang it is accepted if libomp is installed.
APPLE = f"""\
#!/bin/sh
echo "$*" >> "{{notes}}"
case "$*" in
  *"-Xclang -fopenmp"*) {{separate}};;
  *" -fopenmp "*) echo "{REFUSED}" >&2; exit 1;;
esac
exec {{real}} "$@"
"""
WITH_LIBOMP = """set -- $(printf '%s ' "$@" | sed 's/-Xclang//; s/-lomp/-lgomp/'); exec {real} "$@" """
WITHOUT_LIBOMP = 'echo "ld: library not found for -lomp" >&2; exit 1'
# Accepts the flag and links nothing: what calls OpenMP cannot be loaded.
UNLINKED = """\
#!/bin/sh
for word; do shift; case "$word" in -fopenmp) set -- "$@" -fopenmp -c;; *) set -- "$@" "$word";; esac; done
case "$*" in
  *"-Xclang"*) exit 1;;
  *" -fopenmp -c "*)
    for word; do shift
      case "$word" in -shared|-Wl,*|-l*) ;; *.so) out="$word"; set -- "$@" "$word.o";; *) set -- "$@" "$word";; esac
    done
    {real} "$@" && exec {real} -shared -nodefaultlibs -o "$out" "$out.o";;
esac
exec {real} "$@"
"""
FIRST_HOUR = """
import warnings
import numpy as np, scipy.sparse as sp, sparseloom as sl
warnings.simplefilter("always")

def told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = call()
    return made, [str(one.message) for one in caught]

A = sp.random_array((3000, 3000), density=0.05, format="csr", rng=np.random.default_rng(0))
x = np.arange(3000.0)
small, said = told(lambda: (sl.asarray([1.0]) + 1).to_numpy())
assert small == [2.0] and not said, said
planned, said = told(lambda: sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x))
assert np.allclose(planned.to_numpy(), A @ x)
own, more = told(lambda: sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(i,CPUThread,NoRaces)")(A, x))
assert np.allclose(own.to_numpy(), A @ x)
said += more
total, more = told(lambda: sl.program("s = x(i)", schedule="parallelize(i,CPUThread,ParallelReduction)")(x))
assert float(total) == x.sum()
said += more
square, more = told(lambda: sl.asarray(A) @ sl.asarray(A))
assert abs(square.to_scipy() - A @ A).max() < 1e-9
said += more
maximum, more = told(lambda: sl.program("m = max(i, x(i))", schedule="parallelize(i,CPUThread,Atomics)")(x))
assert float(maximum) == 2999
said += more
(_, setting), threads = told(lambda: sl.set_threads(2)), sl.get_threads()
sl.set_threads(None)
kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"})
kernel(A, x)
print(len(said), len(setting), threads, "CPUThread" in kernel.schedule)
for text in said + setting:
    print(text)
"""
ONE_THREAD = """\
kernels run on one thread, because {path} has no OpenMP; the results are the same
  help: install one, for example
    macOS:           brew install libomp, or conda install -c conda-forge llvm-openmp
    Debian, Ubuntu:  apt install libomp-dev (for clang), or apt install gcc
    Fedora:          dnf install libomp-devel (for clang), or dnf install gcc
  or name another compiler in $CC
"""


def ran(code: str, folder: Path, compiler: str, **variables: str) -> str:
    """What a program prints that has a compiler and a cache of its own."""
    environment = {
        **os.environ, "PYTHONPATH": str(SOURCE), "CC": compiler, "SPARSELOOM_CACHE_DIR": str(folder / "cache"), "OMP_NUM_THREADS": "2",
        **variables,
    }  # fmt: skip
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wrapper(folder: Path, text: str) -> Path:
    """A compiler made of another one."""
    program = folder / "cc"
    program.write_text(text)
    program.chmod(stat.S_IRWXU)
    return program


def apple(folder: Path, separate: str) -> Path:
    """A compiler that rejects ``-fopenmp`` as Apple's does, and does this where it stands behind ``-Xclang``."""
    real = shutil.which("gcc") or "cc"
    return wrapper(folder, APPLE.format(notes=folder / "notes", separate=separate.format(real=real), real=real))


def test_without_openmp_everything_runs_on_one_thread_which_is_said_once(tmp_path: Path) -> None:
    path = apple(tmp_path, WITHOUT_LIBOMP)
    warning = ONE_THREAD.format(path=path)
    assert ran(FIRST_HOUR, tmp_path, str(path)) == f"1 1 1 False\n{warning}{warning}"


def test_openmp_behind_another_flag_gives_threads(tmp_path: Path) -> None:
    path = apple(tmp_path, WITH_LIBOMP)
    assert ran(FIRST_HOUR, tmp_path, str(path)) == "0 0 2 True\n"
    notes = (tmp_path / "notes").read_text().splitlines()
    assert sum("probe.c" in call for call in notes) == 2  # one is rejected, the other one is kept
    ran(FIRST_HOUR, tmp_path, str(path))
    assert len((tmp_path / "notes").read_text().splitlines()) == len(notes)


def test_a_compiler_that_takes_the_flag_and_links_nothing_is_found_out(tmp_path: Path) -> None:
    path = wrapper(tmp_path, UNLINKED.format(real=shutil.which("gcc")))
    assert ran(FIRST_HOUR, tmp_path, str(path)).startswith("1 1 1 False\n")


def test_openmp_that_is_installed_later_is_found(tmp_path: Path) -> None:
    switch = f"if [ -e {tmp_path}/installed ]; then {WITH_LIBOMP}; fi; {WITHOUT_LIBOMP}"
    path = apple(tmp_path, switch)
    assert ran(FIRST_HOUR, tmp_path, str(path)).startswith("1 1 1 False\n")
    (tmp_path / "installed").touch()
    assert ran(FIRST_HOUR, tmp_path, str(path)) == "0 0 2 True\n"


def test_one_thread_is_not_reported_to_who_wants_one(tmp_path: Path) -> None:
    path = apple(tmp_path, WITHOUT_LIBOMP)
    code = FIRST_HOUR.replace("sl.set_threads(2)", "sl.set_threads(1)")
    assert ran(code, tmp_path, str(path), OMP_NUM_THREADS="1").startswith("0 0 1 ")


@pytest.mark.parametrize("options", ["", "-fopenmp"])
def test_clang_has_threads_where_libomp_is_installed(tmp_path: Path, options: str) -> None:
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("there is no clang")
    (tmp_path / "empty.c").write_text("int empty;\n")
    command = [clang, "-shared", "-fPIC", "-fopenmp", "-o", str(tmp_path / "empty.so"), str(tmp_path / "empty.c")]
    linked = subprocess.run(command, check=False, capture_output=True)
    wanted = "0 0 2 True\n" if linked.returncode == 0 else "1 1 1 False\n"
    assert ran(FIRST_HOUR, tmp_path, f"{clang} {options}").startswith(wanted)
