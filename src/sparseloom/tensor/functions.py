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
from sparseloom.tensor.arithmetic import as_argument
from sparseloom.tensor.expression import Expression, apply, lift
from sparseloom.tensor.operators import elementwise
from sparseloom.tensor.tensor import Tensor

__all__ = [
    "absolute", "all", "any", "arccos", "arcsin", "arctan", "arctan2", "cbrt", "ceil",
    "conjugate", "cos", "cosh", "equal", "exp", "expm1", "floor", "hypot", "imag",
    "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_and", "logical_not",
    "logical_or", "logical_xor", "max", "maximum", "min", "minimum", "not_equal", "power", "prod",
    "real", "sign", "sin", "sinh", "sqrt", "square", "sum", "tan", "tanh",
    "trunc", "where",
]  # fmt: skip


def _function(name: str) -> Callable[..., Any]:
    """The element-wise function that stands for an operator of ``core.algebra``."""
    arity = OPERATORS[name].arity

    def function(*values: Any) -> Any:
        if len(values) != arity:
            raise NotationError(f"{name} takes {arity} argument{'s' if arity > 1 else ''}, not {len(values)}")
        if builtins.any(isinstance(value, Expression) for value in values):
            return apply(name, *values)
        arguments = [as_argument(value) for value in values]
        given = [argument for argument in arguments if argument is not None]
        if len(given) != len(arguments):
            wrong = next(type(value).__name__ for value, argument in zip(values, arguments, strict=True) if argument is None)
            raise NotationError(f"{name} cannot take a {wrong}; give expressions, tensors, arrays or numbers")
        return Tensor(elementwise(name, *given))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}`` of expressions, or of tensors element by element, as NumPy's function of this name."
    return function


absolute = _function("absolute")
arccos = _function("arccos")
arcsin = _function("arcsin")
arctan = _function("arctan")
arctan2 = _function("arctan2")
cbrt = _function("cbrt")
ceil = _function("ceil")
conjugate = _function("conjugate")
cos = _function("cos")
cosh = _function("cosh")
equal = _function("equal")
exp = _function("exp")
expm1 = _function("expm1")
floor = _function("floor")
hypot = _function("hypot")
imag = _function("imag")
isfinite = _function("isfinite")
isinf = _function("isinf")
isnan = _function("isnan")
log = _function("log")
log10 = _function("log10")
log1p = _function("log1p")
log2 = _function("log2")
logical_and = _function("logical_and")
logical_not = _function("logical_not")
logical_or = _function("logical_or")
logical_xor = _function("logical_xor")
maximum = _function("maximum")
minimum = _function("minimum")
not_equal = _function("not_equal")
power = _function("power")
real = _function("real")
sign = _function("sign")
sin = _function("sin")
sinh = _function("sinh")
sqrt = _function("sqrt")
square = _function("square")
tan = _function("tan")
tanh = _function("tanh")
trunc = _function("trunc")
where = _function("where")


def _reduction(name: str, op: str) -> Callable[[Any, Any], Expression]:
    """The reduction that combines an expression over all values of some variables."""

    def reduction(variables: Any, expression: Any) -> Expression:
        if isinstance(variables, Tensor):
            raise NotationError(f"sl.{name} reduces expressions over index variables; for a whole tensor write A.{name}(axis)")
        bound = variables if isinstance(variables, tuple) else (variables,)
        if not bound or not builtins.all(isinstance(variable, IndexVar) for variable in bound):
            raise NotationError(f"the first argument of sl.{name} must be index variables, as in sl.{name}(j, A[i, j])")
        body = lift(expression)
        return Expression(Reduce(op, bound, body.node), body.operands, (body,))

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"The {name} of an expression over one variable or a tuple of them: ``{name}(j, A[i, j])``."
    return reduction


sum = _reduction("sum", "add")
prod = _reduction("prod", "multiply")
min = _reduction("min", "minimum")
max = _reduction("max", "maximum")
any = _reduction("any", "logical_or")
all = _reduction("all", "logical_and")
