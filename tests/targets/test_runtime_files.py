"""The files of C and CUDA that kernels take their functions from: what becomes of each, and that compilers read them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import sparseloom as sl
from sparseloom.core.dtypes import INDEX_DTYPES
from sparseloom.loops.hashing import HASH_FACTOR
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.targets import c_prelude, cuda_prelude, runtime_files
from sparseloom.targets.c import translation_unit
from sparseloom.targets.c_guard import guard_source
from sparseloom.targets.c_prelude import needed, of_index, prelude_for
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.runtime_files import parts, spelled

FILES = sorted(found.name for found in runtime_files.FOLDER.iterdir())
# The words that stand for something else, in the files that have any.
WORDS = "INDEX TYPE NAME UNSIGNED SUFFIX OPERATOR COMBINED WIDTH HALF FLOATING LARGEST HASH_FACTOR MASK".split()
LEFT = re.compile(rf"\b\w*_?(?:{'|'.join(WORDS)})\b")
ALLOWED = {"HALF", "HAS_MASKS"}


def test_a_file_is_read_by_its_parts() -> None:
    assert set(FILES) >= {"sort.h", "memory.h", "guard.h", "numbers.h", "complex.h", "warps.cuh", "checks.cu"}
    assert list(parts("halves.cuh")) == ["float32_of_float16", "float16_of_float32"]
    assert parts("pieces.h")["take_piece"].startswith("static void *take_piece(void **pieces) {\n")
    assert "//" not in parts("pieces.h")["is_whole"], "comments at the head of a part are for readers of the file"


def test_words_are_replaced_the_longest_first() -> None:
    assert spelled("LANES LANE aLANE_LANES", {"LANE": "ps", "LANES": "8"}) == "8 ps aps_8"
    assert f"UINT64_C({HASH_FACTOR})" in c_prelude.helpers()["leading_bits"]
    assert {"sort_int32", "rank8_int32", "lower_bound_int32", "join_positions_int32"} <= set(of_index(INDEX_DTYPES[0]))


@pytest.mark.parametrize("texts", [c_prelude.helpers(), cuda_prelude.helpers(CUDA.lanes)], ids=["C", "CUDA"])
def test_no_word_is_left(texts: dict[str, str]) -> None:
    left = {name: found for name, text in texts.items() if (found := set(LEFT.findall(text)) - ALLOWED)}
    assert not left


def test_every_helper_is_read_by_a_compiler(tmp_path: Path) -> None:
    """All of them in one text, with the headers that they need."""
    text = prelude_for("\n".join(f"// {name}" for name in c_prelude.helpers()))
    assert text.count("\nstatic ") > 150
    (tmp_path / "all.c").write_text(text)
    (tmp_path / "guard.c").write_text(guard_source())
    flags = ["-std=gnu11", "-fopenmp", "-march=native", "-fsyntax-only", "-Werror=implicit-function-declaration"]
    for name in ("all.c", "guard.c"):
        done = subprocess.run([os.environ.get("CC", "gcc"), *flags, name], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_kernels_of_a_gpu_use_is_read_by_its_compiler() -> None:
    used = r"atomic_|across_|before_|search_|c[a-z]+f?$|read_wide|write_wide"
    names = [name for name in cuda_prelude.helpers(CUDA.lanes) if re.match(used, name)]
    assert len(names) > 100
    assert compile_cubin(cuda_prelude.prelude_for("\n".join(f"// {name}" for name in names), CUDA.lanes))


def test_a_text_has_what_it_uses_and_nothing_else() -> None:
    chosen = needed("sort_int32(array, scratch, flags, 3, 9);", c_prelude.helpers())
    assert list(chosen)[-1] == "sort_int32" and "insert_int32" in chosen and "sort_int64" not in chosen


def test_a_change_of_a_file_changes_the_text_by_which_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    function = sl.program("s = A(i) // B(i)", {}).preview().stages.lowered.function
    before = translation_unit([(function, "entry")])
    changed = parts("numbers.h") | {"float floordiv": "// changed\n" + parts("numbers.h")["float floordiv"]}
    monkeypatch.setattr(c_prelude, "parts", lambda file: changed if file == "numbers.h" else runtime_files.parts(file))
    c_prelude.helpers.cache_clear()
    try:
        head = "static inline double floordiv"
        assert translation_unit([(function, "entry")]) == before.replace(head, f"// changed\n{head}")
    finally:
        c_prelude.helpers.cache_clear()
