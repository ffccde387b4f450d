"""docs/primitives is what the code and the refusals' tests make it. ``SPARSELOOM_GOLDEN=write`` writes it again."""

from __future__ import annotations

from docs.primitive_pages import EXAMPLES, FOLDER, pages
from primitives.golden import WRITES

from sparseloom.schedule.primitive import PRIMITIVES


def test_every_primitive_has_an_example() -> None:
    assert set(EXAMPLES) == set(PRIMITIVES)


def test_the_pages_are_up_to_date() -> None:
    made = pages()
    if WRITES:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    assert {file.name for file in FOLDER.iterdir()} == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"docs/primitives/{name} is out of date: see the top of this file"
