"""Families of value types, and the operators that make sense on each, so that almost every random statement is valid.

An *exact* operator gives the same bits however it is computed, as long as the data are small whole numbers; the others are compared
within a tolerance. Inexact values never decide a branch: no comparison, condition or truth value is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes

BFLOAT16 = ml_dtypes.bfloat16.__name__  # which NumPy knows by name once ml_dtypes is there
_FLOATS = ("float64", "float64", "float32")
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_COMPLEX = ("complex64", "complex128")

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_TESTS = ("logical_not", "isnan", "isinf", "isfinite")
_ROUNDING = ("floor", "ceil", "trunc")
_ORDERED = ("minimum", "maximum")
_TRANSCENDENTAL = tuple(
    "sqrt exp log sin cos tan arcsin arccos arctan sinh cosh tanh log1p expm1 log2 log10 cbrt".split()
)


@dataclass(frozen=True)
class Family:
    """Value types that are drawn together, and what is computed on them."""

    name: str
    dtypes: tuple[str, ...]
    unary: tuple[str, ...]
    binary: tuple[str, ...]
    inexact: tuple[str, ...]
    reductions: tuple[str, ...]
    subtracts: bool = True
    is_float: bool = False
    smallest: int = -3
    literals: tuple[complex, ...] = (0, 1, 2, 3, -2)
    semirings: tuple[str, ...] = ()


_REDUCTIONS = ("add", "add", "minimum", "maximum", "logical_or", "logical_and", "logical_xor")
_RINGS = ("min_plus", "max_plus", "min_times", "max_times", "max_min", "min_max", "or_and", "xor_and")

FAMILIES: dict[str, tuple[Family, float]] = {
    family.name: (family, weight)
    for family, weight in (
        (
            Family(
                "float",
                _FLOATS,
                ("absolute", "sign", "square", *_TESTS, *_ROUNDING, "conjugate", "real", "imag"),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                _TRANSCENDENTAL,
                (*_REDUCTIONS, "multiply"),
                is_float=True,
                literals=(0, 1, 2, -3, 0.5, -2.0, True),
                semirings=_RINGS,
            ),
            0.45,
        ),
        (
            Family(
                "signed",
                _SIGNED,
                ("absolute", "sign", "square", *_TESTS, *_ROUNDING),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                ("sqrt", "exp", "sin", "arctan", "tanh", "cbrt"),
                (*_REDUCTIONS, "multiply"),
                semirings=_RINGS,
            ),
            0.19,
        ),
        (
            Family(
                "unsigned",
                _UNSIGNED,
                ("absolute", "sign", "square", "logical_not", "floor"),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                ("sqrt", "cos", "log1p"),
                (*_REDUCTIONS, "multiply"),
                subtracts=False,
                smallest=0,
                literals=(0, 1, 2, 3),
                semirings=_RINGS,
            ),
            0.08,
        ),
        (
            Family(
                "bool",
                ("bool",),
                ("absolute", "logical_not", "conjugate"),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                ("sqrt", "exp"),
                (*_REDUCTIONS, "multiply"),
                subtracts=False,
                smallest=0,
                literals=(True, False, 1, 2),
                semirings=("or_and", "xor_and", "max_min", "min_max"),
            ),
            0.07,
        ),
        (
            Family(
                "complex",
                (*_COMPLEX, "complex128", "float64", "float32"),
                ("conjugate", "real", "imag", "square", "logical_not", "isfinite", "isnan"),
                ("equal", "not_equal", *_LOGICAL),
                ("exp", "sin", "cos", "sinh", "cosh", "absolute"),
                ("add", "logical_or", "logical_and"),
                literals=(0, 1, 2, -3, 2j, 1 - 1j),
                is_float=True,
            ),
            0.08,
        ),
        (
            # Products of these need more digits than a half has: one that is rounded on the way is found.
            Family(
                "half",
                ("float16", "float16", BFLOAT16, BFLOAT16, "float32", "int8"),
                ("absolute", "sign", "square", *_TESTS, *_ROUNDING, "real"),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                ("sqrt", "exp", "sin", "arctan", "tanh", "cbrt", "log1p"),
                (*_REDUCTIONS, "multiply"),
                is_float=True,
                smallest=-40,
                literals=(0, 1, 2, -3, 0.5, 0.25, True),
                semirings=_RINGS,
            ),
            0.08,
        ),
        (
            # Wide values of narrow dtypes: where they meet wider ones, it matters which were combined first.
            Family(
                "narrow",
                ("bool", "int8", "int8", "uint8", "int16", "int64", "uint64"),
                ("absolute", "logical_not"),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                ("arctan", "tanh"),
                (*_REDUCTIONS, "multiply"),
                subtracts=False,
                smallest=-120,
                literals=(0, 1, 2, 3, 100, True),
            ),
            0.1,
        ),
        (
            Family(
                "mixed",
                (*_FLOATS, *_SIGNED, *_UNSIGNED, "bool"),
                ("absolute", *_TESTS),
                (*_ORDERED, *_COMPARISONS, *_LOGICAL),
                ("sqrt", "exp", "arctan", "tanh"),
                _REDUCTIONS,
                subtracts=False,
                is_float=True,
                literals=(0, 1, 2, 3, 0.5, True),
            ),
            0.13,
        ),
    )
}
