"""``sparseloom bench cpu`` and ``bench gpu``: measure kernels beside other libraries, and make tables, pictures and a page of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from sparseloom.cli.arguments import Subcommands, add_subcommand

ABOUT = "Measure kernels beside hand-written C, cuSPARSE and every other library that is installed. What is missing is named."
EXAMPLES = """
sparseloom bench cpu --quick                                  a look, in two minutes
sparseloom bench cpu --kernels spmv,spmm --threads 1,2        some of it
sparseloom bench cpu --data FOLDER --json run.json            on the .mtx, .npz and .tns files of a folder
sparseloom bench cpu --from run.json --markdown page.md --pictures pictures   a page from numbers that were kept
sparseloom bench gpu --kernels spmv --cases six --limit 60    some of it on a GPU, beside cuSPARSE's every algorithm
"""


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    parser = add_subcommand(subcommands, "bench", execute, ABOUT, EXAMPLES)
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


def execute(options: argparse.Namespace) -> int:
    """Load what measures, which the other commands do not need, and run it."""
    if options.machine == "gpu":
        from sparseloom.cli.measuring_gpu import measure_and_tell as measure_on_gpu

        return measure_on_gpu(options)
    from sparseloom.cli.measuring import measure_and_tell

    return measure_and_tell(options)
