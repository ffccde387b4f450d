"""How functions are called that are made and not written, for type checkers: of one or two arguments, and reductions."""

from __future__ import annotations

from typing import Any, Protocol, overload

from sparseloom.notation.nodes import IndexVar
from sparseloom.tensor.expression import Expression
from sparseloom.tensor.tensor import Tensor

Indexed = Expression | IndexVar
Axes = int | tuple[int, ...]


class Unary(Protocol):
    """A function of one argument, in index notation or of whole tensors."""

    @overload
    def __call__(self, x: Expression, /) -> Expression: ...
    @overload
    def __call__(self, x: Any, /) -> Tensor: ...


class Binary(Protocol):
    """A function of two arguments, in index notation or of whole tensors."""

    @overload
    def __call__(self, x: Indexed, y: Any, /) -> Expression: ...
    @overload
    def __call__(self, x: Any, y: Indexed, /) -> Expression: ...
    @overload
    def __call__(self, x: Any, y: Any, /) -> Tensor: ...


class UnaryOfTensors(Protocol):
    """A function of one whole tensor."""

    def __call__(self, x: Any, /) -> Tensor: ...


class BinaryOfTensors(Protocol):
    """A function of two whole tensors."""

    def __call__(self, x: Any, y: Any, /) -> Tensor: ...


class Total(Protocol):
    """A sum or a product: of an expression over variables, or of a tensor along modes."""

    @overload
    def __call__(self, variables: IndexVar | tuple[IndexVar, ...], body: Expression, /) -> Expression: ...
    @overload
    def __call__(self, x: Any, /, axis: Axes, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Tensor: ...
    @overload
    def __call__(self, x: Any, /, axis: None = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any: ...


class Extreme(Protocol):
    """The largest or the smallest value: of an expression over variables, or of a tensor along modes."""

    @overload
    def __call__(self, variables: IndexVar | tuple[IndexVar, ...], body: Expression, /) -> Expression: ...
    @overload
    def __call__(self, x: Any, /, axis: Axes, out: Any = None, keepdims: bool = False, *, explicit: bool = False) -> Tensor: ...
    @overload
    def __call__(self, x: Any, /, axis: None = None, out: Any = None, keepdims: bool = False, *, explicit: bool = False) -> Any: ...


class Truth(Protocol):
    """Whether any or all values are true: of an expression over variables, or of a tensor along modes."""

    @overload
    def __call__(self, variables: IndexVar | tuple[IndexVar, ...], body: Expression, /) -> Expression: ...
    @overload
    def __call__(self, x: Any, /, axis: Axes, out: Any = None, keepdims: bool = False) -> Tensor: ...
    @overload
    def __call__(self, x: Any, /, axis: None = None, out: Any = None, keepdims: bool = False) -> Any: ...
