"""``python -m benchmarks cpu`` and ``gpu``: measure kernels and other libraries, and make tables, pictures and a page of the numbers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

from sparseloom.cli.main import carry_out

ABOUT = "Measure kernels beside hand-written C, cuSPARSE and every other library that is installed. What is missing is named."
EXAMPLES = """
python -m benchmarks cpu --quick                                  a look, in two minutes
python -m benchmarks cpu --kernels spmv,spmm --threads 1,2        some of it
python -m benchmarks cpu --data FOLDER --json run.json            on the .mtx, .npz and .tns files of a folder
python -m benchmarks cpu --from run.json --markdown page.md --pictures pictures   a page from numbers that were kept
python -m benchmarks gpu --kernels spmv --cases six --limit 60    some of it on a GPU, beside cuSPARSE's every algorithm
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks and return the exit status."""
    return carry_out(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=ABOUT,
        epilog="examples:\n" + indent(EXAMPLES.strip(), "  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(execute=execute)
    parser.add_argument("machine", choices=("cpu", "gpu"), help="what runs: cpu or gpu")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small operands and one dtype: two minutes")
    sizes.add_argument("--toy", action="store_true", help="tiny operands and few rounds: only to see that everything runs")
    parser.add_argument("--kernels", metavar="NAMES", help="such as spmv,spmm,studies (default: all; a wrong name lists them)")
    parser.add_argument("--cases", metavar="NAMES", help="only these matrices and tensors, on a GPU also sets; a wrong name lists them")
    parser.add_argument("--threads", metavar="COUNTS", help="such as 1,2,16 (default: 1, 2 and all); not on a GPU")
    parser.add_argument("--dtypes", metavar="NAMES", help="f64,f32 (default: both)")
    parser.add_argument("--seconds", type=float, metavar="S", help="for each kernel on each operand (default: 0.5; on a GPU 0.2)")
    parser.add_argument("--limit", type=float, metavar="S", help="stop after so many seconds, and name what is left out")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="real matrices and tensors instead of generated ones")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the numbers go")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="where one picture for each kernel goes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="where the page goes")
    parser.add_argument("--note", metavar="TEXT", help="a word for the page, such as what else the machine was doing")
    parser.add_argument("--from", dest="kept", type=Path, nargs="+", metavar="FILE", help="measure nothing: take numbers that were kept")
    return parser


def execute(options: argparse.Namespace) -> int:
    """Load what measures, which the other commands do not need, and run it."""
    if options.machine == "gpu":
        from benchmarks.measuring_gpu import measure_and_tell as measure_on_gpu

        return measure_on_gpu(options)
    from benchmarks.measuring import measure_and_tell

    return measure_and_tell(options)
