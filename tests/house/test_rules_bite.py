"""Each rule of the house finds what it forbids, and says where and what to do."""

from __future__ import annotations

import pytest
from house import rules
from house.reading import Module
from house.rules import Rule


def module(name: str, text: str, package: bool = False) -> Module:
    """A made-up module."""
    return Module("src/" + name.replace(".", "/") + ("/__init__.py" if package else ".py"), name, text)


GOOD = (
    module("sparseloom", '"""The package."""\nfrom sparseloom.core.trees import Node\n', package=True),
    module("sparseloom.core", '"""The ground floor."""\n', package=True),
    module("sparseloom.core.trees", '"""Trees."""\nimport os\nimport numpy as np\n\nclass Node:\n    """A node."""\n    size: int\n'),
    module(
        "sparseloom.loops.nodes",
        '"""Loops."""\nfrom sparseloom.core import trees\nfrom sparseloom.core.trees import Node\n\n'
        'class Loop(Node):\n    """A loop."""\n\n    @property\n    def size(self):\n        return 1\n',
    ),
    module("sparseloom.interop.scipy", '"""SciPy."""\n\ndef _load():\n    import scipy.sparse\n'),
    module("sparseloom.cli.main", '"""The command."""\nimport rich.console\nimport sparseloom as sl\n'),
)

BAD: list[tuple[Rule, tuple[Module, ...], str]] = [
    (
        rules.floors,
        (module("sparseloom.core.trees", "import os\nfrom sparseloom.formats.level import Level\n"),),
        "src/sparseloom/core/trees.py:2: core imports sparseloom.formats.level, which stands above it; "
        "move what both need down to core or below",
    ),
    (
        rules.floors,
        (module("sparseloom.attic.old", "import sparseloom.core.trees\n"),),
        "src/sparseloom/attic/old.py:1: attic has no floor; give it a place in FLOORS of tests/house/rules.py",
    ),
    (
        rules.relations_are_asked,
        (module("sparseloom.lower.a", "from sparseloom.relations.fuse import FuseRelation\n\ndone = isinstance(1, FuseRelation)\n"),),
        "src/sparseloom/lower/a.py:3: FuseRelation is told apart by its class; ask the relation (relations/relation.py)",
    ),
    (
        rules.no_cycles,
        (
            module("sparseloom.core.a", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sparseloom.core.b import B\n"),
            module("sparseloom.core.b", "from sparseloom.core import a\n"),
        ),
        "import cycle sparseloom.core.a -> sparseloom.core.b -> sparseloom.core.a: move what they share into a module that both import",
    ),
    (
        rules.imports_at_the_top,
        (module("sparseloom.core.a", "class A:\n    def f(self):\n        if self:\n            import os\n"),),
        "src/sparseloom/core/a.py:4: os is imported inside a function; move it to the top, "
        "or move the function to interop, io or cli",
    ),
    (
        rules.system_differences,
        (module("sparseloom.core.a", "import fcntl\n"), module("sparseloom.core.system", "import os\nos.cpu_count()\n")),
        "src/sparseloom/core/a.py:1: import fcntl does not exist on every system; ask core/system.py or toolchain/filelocks.py",
    ),
    (
        rules.system_differences,
        (module("sparseloom.core.a", "import os\nprint(os.cpu_count())\n"),),
        "src/sparseloom/core/a.py:2: os.cpu_count does not exist on every system; ask core/system.py or toolchain/filelocks.py",
    ),
    (
        rules.imports_are_absolute,
        (module("sparseloom.core.a", "from .b import B\n"),),
        "src/sparseloom/core/a.py:1: .b is a relative import; write it out from sparseloom",
    ),
    (
        rules.foreign_packages,
        (module("sparseloom.interop.scipy", "try:\n    import scipy.sparse\nexcept ImportError:\n    pass\n"),),
        "src/sparseloom/interop/scipy.py:2: scipy.sparse is imported with the module; "
        "import it inside a function of interop, io or cli",
    ),
    (
        rules.foreign_packages,
        (module("sparseloom.core.a", "from rich.table import Table\n"),),
        "src/sparseloom/core/a.py:1: rich.table is imported with the module; "
        "import it inside a function of interop, io or cli",
    ),
    (
        rules.module_docstrings,
        (module("sparseloom.core", "", package=True),),
        "src/sparseloom/core/__init__.py: no docstring; say in one sentence what the module is for",
    ),
    (
        rules.public_docstrings,
        (module("sparseloom.core.a", "def f():\n    pass\n"),),
        "src/sparseloom/core/a.py:1: f is public and has no docstring; say what it does, or rename it _f",
    ),
    (
        rules.public_docstrings,
        (module("sparseloom.core.a", 'class A(B):\n    """A."""\n    def f(self):\n        pass\n'),),
        "src/sparseloom/core/a.py:3: A.f is public and has no docstring; say what it does, or rename it _f",
    ),
    (
        rules.file_length,
        (module("sparseloom.core.a", "x = 1\n" * 451),),
        "src/sparseloom/core/a.py: 451 lines, more than 450; split it by idea",
    ),
    (
        rules.function_length,
        (module("sparseloom.core.a", "def f():\n" + "    x = 1\n" * 50),),
        "src/sparseloom/core/a.py:1: f has 51 lines, more than 50; give a part of it a name",
    ),
    (
        rules.telling_names,
        (module("sparseloom.core.tree_utils", ""),),
        "src/sparseloom/core/tree_utils.py: 'utils' says nothing about what is inside; name the module after its idea",
    ),
    (
        rules.finished_code,
        (module("sparseloom.core.a", "x = 1\ny = 2  # " + "TO" + "DO later\n"),),
        "src/sparseloom/core/a.py:2: " + "TO" + "DO; finish it, or take it out and refuse with a coded error",
    ),
    (
        rules.finished_code,
        (
            module(
                "sparseloom.core.a",
                "try:\n    f()\nexcept (NotImplementedError, OSError):\n    raise " + "NotImplementedError('later') from None\n",
            ),
        ),
        "src/sparseloom/core/a.py:4: raise " + "NotImplementedError; finish it, or take it out and refuse with a coded error",
    ),
]


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_a_good_house_passes(rule: Rule) -> None:
    assert rule(GOOD) == []


@pytest.mark.parametrize(("rule", "modules", "complaint"), BAD, ids=[rule.__name__ for rule, _, _ in BAD])
def test_a_breach_is_named(rule: Rule, modules: tuple[Module, ...], complaint: str) -> None:
    assert rule(modules) == [complaint]


def test_every_rule_is_shown_to_bite() -> None:
    assert {rule.__name__ for rule, _, _ in BAD} == {rule.__name__ for rule in rules.RULES}
