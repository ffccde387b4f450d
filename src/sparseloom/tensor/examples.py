"""Examples for the docstrings of functions that are made from a table, not written: what each is given, and what it gives."""

from __future__ import annotations

ARGUMENTS = {
    "absolute": ("[-2.0, 3.0]", "[2., 3.]"),
    "add": ("[1.0, 2.0], 10.0", "[11., 12.]"),
    "arccos": ("[1.0, 0.0]", "[0.        , 1.57079633]"),
    "arcsin": ("[0.0, 1.0]", "[0.        , 1.57079633]"),
    "arctan": ("[0.0, 1.0]", "[0.        , 0.78539816]"),
    "arctan2": ("[0.0, 1.0], [1.0, 0.0]", "[0.        , 1.57079633]"),
    "cbrt": ("[8.0, 27.0]", "[2., 3.]"),
    "ceil": ("[0.5, 2.0]", "[1., 2.]"),
    "conjugate": ("[1 + 2j]", "[1.-2.j]"),
    "cos": ("[0.0, np.pi]", "[ 1., -1.]"),
    "cosh": ("[0.0]", "[1.]"),
    "divide": ("[1.0, 3.0], 2.0", "[0.5, 1.5]"),
    "equal": ("[1, 2], [1, 3]", "[ True, False]"),
    "exp": ("[0.0, 1.0]", "[1.        , 2.71828183]"),
    "expm1": ("[0.0, 1.0]", "[0.        , 1.71828183]"),
    "floor": ("[0.5, -0.5]", "[ 0., -1.]"),
    "greater": ("[1, 2], 1", "[False,  True]"),
    "greater_equal": ("[1, 2], 2", "[False,  True]"),
    "hypot": ("[3.0, 0.0], [4.0, 2.0]", "[5., 2.]"),
    "imag": ("[1 + 2j]", "[2.]"),
    "isfinite": ("[1.0, np.inf]", "[ True, False]"),
    "isinf": ("[1.0, np.inf]", "[False,  True]"),
    "isnan": ("[1.0, np.nan]", "[False,  True]"),
    "less": ("[1, 2], 2", "[ True, False]"),
    "less_equal": ("[1, 2], 1", "[ True, False]"),
    "log": ("[1.0, np.e]", "[0., 1.]"),
    "log10": ("[1.0, 100.0]", "[0., 2.]"),
    "log1p": ("[0.0, np.e - 1]", "[0., 1.]"),
    "log2": ("[1.0, 8.0]", "[0., 3.]"),
    "logical_and": ("[True, False], [True, True]", "[ True, False]"),
    "logical_not": ("[True, False]", "[False,  True]"),
    "logical_or": ("[True, False], [False, False]", "[ True, False]"),
    "logical_xor": ("[True, True], [True, False]", "[False,  True]"),
    "maximum": ("[1, 5], 3", "[3, 5]"),
    "minimum": ("[1, 5], 3", "[1, 3]"),
    "multiply": ("[2, 3], [4, 0]", "[8, 0]"),
    "negative": ("[1.0, -2.0]", "[-1.,  2.]"),
    "not_equal": ("[1, 2], [1, 3]", "[False,  True]"),
    "power": ("[2.0, 3.0], 2.0", "[4., 9.]"),
    "real": ("[1 + 2j]", "[1.]"),
    "sign": ("[-2.0, 0.0, 5.0]", "[-1.,  0.,  1.]"),
    "sin": ("[0.0, np.pi / 2]", "[0., 1.]"),
    "sinh": ("[0.0, 1.0]", "[0.        , 1.17520119]"),
    "sqrt": ("[0.0, 4.0]", "[0., 2.]"),
    "square": ("[2.0, -3.0]", "[4., 9.]"),
    "subtract": ("[5.0, 2.0], 1.0", "[4., 1.]"),
    "tan": ("[0.0, 1.0]", "[0.        , 1.55740772]"),
    "tanh": ("[0.0, 1.0]", "[0.        , 0.76159416]"),
    "trunc": ("[1.7, -1.7]", "[ 1., -1.]"),
    "arcsinh": ("[0.0, 1.0]", "[0.        , 0.88137359]"),
    "arccosh": ("[1.0, 2.0]", "[0.       , 1.3169579]"),
    "arctanh": ("[0.0, 0.5]", "[0.        , 0.54930614]"),
    "rint": ("[0.5, 1.5]", "[0., 2.]"),
    "signbit": ("[-1.0, 2.0]", "[ True, False]"),
    "reciprocal": ("[2.0, 4.0]", "[0.5 , 0.25]"),
    "exp2": ("[0.0, 3.0]", "[1., 8.]"),
    "fabs": ("[-2.0, 3.0]", "[2., 3.]"),
    "deg2rad": ("[0.0, 180.0]", "[0.        , 3.14159265]"),
    "rad2deg": ("[0.0, np.pi]", "[  0., 180.]"),
    "degrees": ("[0.0, np.pi]", "[  0., 180.]"),
    "radians": ("[0.0, 180.0]", "[0.        , 3.14159265]"),
    "spacing": ("[1.0]", "[2.22044605e-16]"),
    "invert": ("[0, 5]", "[-1, -6]"),
    "floor_divide": ("[7, -7], 2", "[ 3, -4]"),
    "remainder": ("[7, -7], 4", "[3, 1]"),
    "fmod": ("[7, -7], 4", "[ 3, -3]"),
    "left_shift": ("[1, 3], 2", "[ 4, 12]"),
    "right_shift": ("[4, 12], 2", "[1, 3]"),
    "bitwise_and": ("[6, 5], 3", "[2, 1]"),
    "bitwise_or": ("[6, 5], 3", "[7, 7]"),
    "bitwise_xor": ("[6, 5], 3", "[5, 6]"),
    "copysign": ("[1.0, 2.0], -1.0", "[-1., -2.]"),
    "nextafter": ("[0.0], 1.0", "[5.e-324]"),
    "logaddexp": ("[0.0], 0.0", "[0.69314718]"),
    "logaddexp2": ("[1.0], 1.0", "[2.]"),
    "heaviside": ("[-1.0, 0.0, 2.0], 0.5", "[0. , 0.5, 1. ]"),
    "fmax": ("[1.0, np.nan], 0.5", "[1. , 0.5]"),
    "fmin": ("[1.0, np.nan], 0.5", "[0.5, 0.5]"),
    "gcd": ("[12, 9], 6", "[6, 3]"),
    "lcm": ("[4, 6], 10", "[20, 30]"),
    "ldexp": ("[1.0, 3.0], 2", "[ 4., 12.]"),
    "float_power": ("[2, 3], 2", "[4., 9.]"),
}
REDUCTIONS = {
    "sum": ("axis=0", "[1., 5.]"),
    "prod": ("axis=1", "[0., 3.]"),
    "min": ("axis=0", "[0., 2.]"),
    "max": ("axis=1", "[2., 3.]"),
    "any": ("axis=0", "[ True,  True]"),
    "all": ("axis=1", "[False,  True]"),
}


def example_of(name: str) -> str:
    """The example of an element-wise function, to stand behind the sentence of its docstring."""
    if name not in ARGUMENTS:
        return ""
    given, made = ARGUMENTS[name]
    return f"\n\n>>> sl.{name}({given}).to_numpy()\narray({made})\n"


def reduction_example(name: str) -> str:
    """The example of a reduction."""
    given, made = REDUCTIONS[name]
    return f"\n\n>>> sl.{name}([[0.0, 2.0], [1.0, 3.0]], {given}).to_numpy()\narray({made})\n"
