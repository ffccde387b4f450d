"""opt_einsum: an optimizer for its ``contract`` that reckons with how full operands are, where its own know sizes only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sparseloom.plan.network import Network, Part, Tree, set_of


def optimizer(densities: Sequence[float]) -> Any:
    """A ``PathOptimizer`` for operands of which such shares are stored; of operands beyond these, all is."""
    from opt_einsum.paths import PathOptimizer

    class SparsePath(PathOptimizer):  # type: ignore[misc]  # its package is not looked into
        """Finds the cheapest order of loop nests, as ``sl.einsum`` does."""

        def __repr__(self) -> str:
            return f"SparsePath({', '.join(f'{density:g}' for density in densities)})"

        def __call__(
            self, inputs: Sequence[Collection[str]], output: Collection[str], size_dict: Mapping[str, int], memory_limit: Any = None
        ) -> list[tuple[int, ...]]:
            """The path, as opt_einsum writes it."""
            known = [*densities, *[1.0] * (len(inputs) - len(densities))][: len(inputs)]
            return path(inputs, output, size_dict, known)

    return SparsePath()


def path(
    inputs: Sequence[Collection[str]], output: Collection[str], sizes: Mapping[str, int], densities: Sequence[float]
) -> list[tuple[int, ...]]:
    """Which operands are multiplied first: each step takes some out of the list, by place, and puts their product behind it."""
    names = sorted({name for labels in inputs for name in labels})
    places = {name: place for place, name in enumerate(names)}
    parts = tuple(
        Part(set_of([places[name] for name in set(labels)]), share, share < 1.0, share < 1.0)
        for labels, share in zip(inputs, densities, strict=True)
    )
    network = Network(parts, tuple(int(sizes[name]) for name in names), set_of([places[name] for name in output]))
    steps: list[tuple[int, ...]] = []
    _walk(network.cheapest(), [*range(len(inputs))], steps)
    return steps


def _walk(tree: int | Tree, waiting: list[int], steps: list[tuple[int, ...]]) -> int:
    """Add the steps that make a tree, and say under which number its product waits."""
    if isinstance(tree, int):
        return tree
    taken = [_walk(part, waiting, steps) for part in tree]
    steps.append(tuple(sorted(waiting.index(number) for number in taken)))
    for number in taken:
        waiting.remove(number)
    made = -len(steps) - 1  # unlike that of any operand
    waiting.append(made)
    return made
