"""What type checkers see of the package: small programs are free of errors and have the types they claim; wrong ones are reported."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from mypy import api

import sparseloom
from sparseloom.surface import TABLE
from sparseloom.tensor import tabled
from sparseloom.tensor.table import methods

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
SCRIPTS = sorted(HERE.glob("user_*.py"))
ERROR = re.compile(r"^(.+?):(\d+): error: .*\[([\w-]+)\]$")


@cache
def reported() -> frozenset[tuple[str, int, str]]:
    """The errors of ``mypy --strict`` in all scripts: file, line and code."""
    options = ["--strict", "--warn-unreachable", "--no-pretty", "--hide-error-context", "--config-file=", "--follow-imports=silent"]
    told, complaint, _ = api.run([*options, *map(str, [*SCRIPTS, HERE / "wrong.py"])])
    assert not complaint, complaint
    found = [ERROR.match(line) for line in told.splitlines() if ": error: " in line]
    assert all(found), told
    return frozenset((Path(each[1]).name, int(each[2]), each[3]) for each in found if each)


@pytest.fixture(autouse=True)
def from_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(SOURCE))


def test_there_are_seven_programs() -> None:
    assert len(SCRIPTS) == 7


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_program_has_the_types_that_it_claims(script: Path) -> None:
    assert [error for error in reported() if error[0] == script.name] == []


def test_wrong_programs_are_reported_and_nothing_else() -> None:
    lines = (HERE / "wrong.py").read_text(encoding="utf-8").splitlines()
    wanted = {("wrong.py", number, code[1]) for number, line in enumerate(lines, 1) if (code := re.search(r"  # ([\w-]+)$", line))}
    assert {error for error in reported() if error[0] == "wrong.py"} == wanted


def visible(tree: ast.Module) -> Iterator[str]:
    """The names that a type checker finds in the package: imported, assigned or declared."""
    for item in ast.walk(tree):
        match item:
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                yield name
            case ast.Assign(targets=[ast.Tuple(several)]):
                yield from (each.id for each in several if isinstance(each, ast.Name))


def test_every_public_name_is_visible() -> None:
    tree = ast.parse(Path(sparseloom.__file__).read_text(encoding="utf-8"))
    assert set(sparseloom.__all__) - set(visible(tree)) == set()
    written = [each.value for item in ast.walk(tree) if isinstance(item, ast.List) for each in item.elts if isinstance(each, ast.Constant)]
    assert set(written) == set(sparseloom.__all__), "checkers read __all__ as it is written"


def test_every_method_of_the_table_is_declared_as_it_is() -> None:
    tree = ast.parse(inspect.getsource(tabled))
    declared = {item.name: item for item in ast.walk(tree) if isinstance(item, ast.FunctionDef)}
    table = dict(methods())
    assert declared.keys() == table.keys()
    for name, function in table.items():
        of_function = list(inspect.signature(function).parameters.values())[1:]
        assert shown(declared[name]) == [(each.name, each.kind is each.KEYWORD_ONLY, each.default) for each in of_function], name


def shown(item: ast.FunctionDef) -> list[tuple[str, bool, object]]:
    """The parameters of a declared method but the first: name, whether only by keyword, and default."""
    given = item.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [inspect.Parameter.empty] * (len(positional) - len(given.defaults)) + [ast.literal_eval(each) for each in given.defaults]
    plain = [(each.arg, False, default) for each, default in zip(positional, defaults, strict=True)][1:]
    rest = [(given.vararg.arg, False, inspect.Parameter.empty)] if given.vararg else []
    keywords = [
        (each.arg, True, inspect.Parameter.empty if default is None else ast.literal_eval(default))
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return [*plain, *rest, *keywords]


def test_functions_that_are_made_take_what_is_declared() -> None:
    tree = ast.parse(Path(sparseloom.__file__).read_text(encoding="utf-8"))
    kinds = {item.target.id: ast.unparse(item.annotation) for item in ast.walk(tree) if isinstance(item, ast.AnnAssign)}
    for name, kind in kinds.items():
        count = {"Unary": 1, "UnaryOfTensors": 1, "Binary": 2, "BinaryOfTensors": 2}.get(kind)
        if count is not None:
            with pytest.raises(sparseloom.NotationError):
                TABLE[name].call(*[1.0] * (count + 1))
