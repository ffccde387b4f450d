"""Functions in index notation, and on whole tensors: ``sqrt(A[i, j])``, ``where(A > 0, A, 0)``, ``sum(j, A[i, j] * x[j])``.

Beside an expression they build an expression; beside tensors and arrays they compute a tensor, broadcast as NumPy does.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.errors import NotationError
from sparseloom.notation.nodes import IndexVar, Reduce
from sparseloom.tensor.arithmetic import as_argument, as_arguments
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.examples import example_of, reduction_example
from sparseloom.tensor.expression import Expression, apply, lift
from sparseloom.tensor.operators import elementwise
from sparseloom.tensor.tensor import Tensor

ELEMENTWISE = (
    "absolute", "add", "arccos", "arcsin", "arctan", "arctan2", "cbrt", "ceil", "conjugate", "cos", "cosh", "divide", "equal",
    "exp", "expm1", "floor", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less",
    "less_equal", "log", "log10", "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "not_equal", "power",
    "real", "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
)  # fmt: skip
__all__ = [*ELEMENTWISE, "sum", "prod", "min", "max", "any", "all"]


def _function(name: str) -> Callable[..., Any]:
    """The element-wise function that stands for an operator of ``core.algebra``."""
    arity = OPERATORS[name].arity

    def function(*values: Any) -> Any:
        if len(values) != arity:
            raise NotationError(f"{name} takes {arity} argument{'s' if arity > 1 else ''}, not {len(values)}")
        has_expressions = builtins.any(isinstance(value, Expression | IndexVar) for value in values)
        only_numbers = builtins.all(isinstance(value, int | float | complex) for value in values)
        if name == "where" and isinstance(values[0], bool) and (has_expressions or only_numbers):
            help = "give a comparison of expressions, such as A[i, j] == 0; for i == j, a mask as a tensor: sl.eye(n)[i, j] == 1"
            raise NotationError(f"the condition of where is {values[0]} everywhere: Python compared two names\n  help: {help}")
        if has_expressions:
            return apply(name, *values)
        arguments = as_arguments(values)
        if arguments is None:
            wrong = next(type(value).__name__ for value in values if as_argument(value) is None)
            raise NotationError(f"{name} cannot take a {wrong}; give expressions, tensors, arrays or numbers")
        return Tensor(elementwise(name, *arguments))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of expressions, or of tensors element by element, as NumPy's function of this name.{example_of(name)}"
    return function


(
    absolute, add, arccos, arcsin, arctan, arctan2, cbrt, ceil, conjugate, cos, cosh, divide, equal,
    exp, expm1, floor, greater, greater_equal, hypot, imag, isfinite, isinf, isnan, less, less_equal, log, log10, log1p, log2,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, not_equal, power,
    real, sign, sin, sinh, sqrt, square, subtract, tan, tanh, trunc, where,
) = map(_function, ELEMENTWISE)  # fmt: skip


def _reduction(name: str, op: str) -> Callable[..., Any]:
    """The reduction that combines an expression over all values of some variables, or a tensor along modes."""

    def reduction(variables: Any, /, *arguments: Any, **options: Any) -> Any:
        bound = variables if isinstance(variables, tuple) else (variables,)
        if len(arguments) == 1 and isinstance(arguments[0], Expression):
            if not bound or not builtins.all(isinstance(variable, IndexVar) for variable in bound):
                raise NotationError(f"the first argument of sl.{name} must be index variables, as in sl.{name}(j, A[i, j])")
        elif not builtins.any(isinstance(variable, (IndexVar, Expression)) for variable in bound):
            return getattr(asarray(variables), name)(*arguments, **options)
        if len(arguments) != 1 or options:
            raise NotationError(f"sl.{name} reduces an expression over index variables, as in sl.{name}(j, A[i, j])")
        body = lift(arguments[0])
        return Expression(Reduce(op, bound, body.node, written=True), body.operands, (body,))

    reduction.__name__ = reduction.__qualname__ = name
    told = f"The {name} of an expression over variables, ``{name}(j, A[i, j])``, or of a tensor along modes."
    reduction.__doc__ = told + reduction_example(name)
    return reduction


sum = _reduction("sum", "add")
prod = _reduction("prod", "multiply")
min = _reduction("min", "minimum")
max = _reduction("max", "maximum")
any = _reduction("any", "logical_or")
all = _reduction("all", "logical_and")
