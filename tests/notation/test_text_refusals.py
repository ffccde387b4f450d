"""Every refusal of the parser, word by word: the sentence, the statement, the caret and the help."""

from __future__ import annotations

import pytest

from sparseloom.core.errors import NotationError
from sparseloom.notation.nodes import TensorVar
from sparseloom.notation.terms import close_over
from sparseloom.notation.text import declare, parse, placeholder

# Blocks of text, one per refusal; the second line of each is the statement, as it was given.
REFUSALS = r"""
cannot read the statement: expected ')' after 'j'
  y(i) = A(i,j * x(j)
               ^
help: a tensor is followed by index variables, with commas between them

cannot read the statement: expected ')' after 'i'
  y(i = A(i,j)
      ^
help: a tensor is followed by index variables, with commas between them

cannot read the statement: expected '=' or '+=' after ')'
  y(i)
      ^

cannot read the statement: expected '=' or '+=' after ')'
  y(i) A(i,j)
       ^

cannot read the statement: the left side must be a tensor
  = A(i,j)
  ^
help: write one such as y(i) or, for a scalar, y

cannot read the statement: the left side must be a tensor
  3 = A(i,j)
  ^
help: write one such as y(i) or, for a scalar, y

cannot read the statement: expected '=' or '+=' after ')'
  y(i) == A(i,j)
       ^

cannot read the statement: there is no '*='
  y(i) *= A(i,j)
       ^
help: a statement is written with = or +=

cannot read the statement: there is no '-='
  y(i) -= A(i,j)
       ^
help: a statement is written with = or +=

cannot read the statement: expected a value after '='
  y(i) =
        ^

cannot read the statement: expected a value after '+'
  y(i) = A(i,j) +
                 ^

cannot read the statement: expected a value after '='
  y(i) = * A(i,j)
         ^

cannot read the statement: expected an operator after ')'
  y(i) = A(i,j) x(j)
                ^

cannot read the statement: 'x' follows a number
  y(i) = 2x(i)
          ^
help: a product is written with *: 2 * x

cannot read the statement: '@' has no meaning here
  y(i) = A(i,j) @ x(j)
                ^
help: a product is written with its indices: A(i,j) * x(j)

cannot read the statement: '^' has no meaning here
  y(i) = A(i,j)^2
               ^
help: a power is written with **

cannot read the statement: 'not' binds looser than '+'
  y(i) = a(i) + not b(i)
                ^
help: put it into parentheses: (not a)

cannot read the statement: expected an operator after ')'
  y(i) = a(i) is b(i)
              ^
help: compare with ==

cannot read the statement: '&' has no meaning here
  y(i) = a(i) && b(i)
              ^
help: write a and b

cannot read the statement: expected a value after 'and'
  y(i) = a(i) and
                 ^

cannot read the statement: ')' closes nothing
  y(i) = A(i,j))
               ^

cannot read the statement: expected ')' after ')'
  y(i) = (A(i,j) + b(i)
                       ^

cannot read the statement: expected an index variable after ','
  y(i) = A(i,)
             ^

cannot read the statement: expected an index variable after '('
  y(i) = A(,i)
           ^

cannot read the statement: an index must be a variable or a whole number, not 1.5
  y(i) = A(i,1.5)
             ^

cannot read the statement: an index counts from 0
  y(i) = A(i,-1)
             ^
help: sizes are not known here, so that nothing can be counted from the end

cannot read the statement: no tensor reaches that far: coordinates have 64 bits
  y(i) = A(i,9223372036854775808)
             ^

cannot read the statement: a result is made as a whole, so it cannot stand at 3
  y(i,3) = A(i,j)
      ^
help: leave that mode out, and put what was computed in its place afterwards; operands may stand at numbers

cannot read the statement: 'round' is not a function, so it cannot be applied to 'x'
  y(i) = round(x(i))
         ^
help: statements have floor, ceil and trunc; sl.round and sl.rint take whole tensors

cannot read the statement: a variable was expected, not 3
  y(i) = sum({3}, A(i,j))
              ^

cannot read the statement: expected ')' after 'i'
  y(i) = A(i+1)
            ^
help: a tensor is followed by index variables, with commas between them

cannot read the statement: 'i' is an index variable, not a value
  y(i) = A(i) * i
                ^
help: pass a tensor that holds 0, 1, 2, ..., and write it as t(i)

cannot read the statement: 'exq' is not a function, so it cannot be applied to 'A'
  y(i) = exq(A(i))
         ^
help: did you mean exp?

cannot read the statement: 'foo' is not a function, so it cannot be applied to 'A'
  y(i) = foo(A(i))
         ^
help: did you mean floor?

cannot read the statement: the function 'exp' takes values, and 'i' is an index variable
  y(i) = exp(i)
             ^
help: write exp[i] if it is a tensor of that name

cannot read the statement: 'exp' takes 1 argument, not 2
  y(i) = exp(A(i), 2)
         ^

cannot read the statement: 'where' takes 3 arguments, not 2
  y(i) = where(A(i), 2)
         ^

cannot read the statement: 'maximum' takes 2 or more arguments, not 1
  y(i) = maximum(A(i))
         ^

cannot read the statement: 'sum' must say over which variables
  y(i) = sum(A(i,j))
         ^
help: write sum(j, A(i,j)) or sum({i,j}, A(i,j))

cannot read the statement: the reduction 'sum' takes variables and one expression
  y(i) = sum(j, A(i,j), 2)
         ^
help: write sum(j, A(i,j)), or sum[i] for a tensor of that name

a reduction names a variable twice
  y(i) = sum({j,j}, A(i,j))
         ^
help: name each variable once

cannot read the statement: 'exp' cannot reduce
  y(i) = exp({j}, A(i,j))
         ^
help: reductions are sum, prod, min, max, any and all

cannot read the statement: variables in braces stand only at the start of a reduction
  y(i) = {j}
         ^
help: write sum({i,j}, A(i,j))

cannot read the statement: variables in braces stand only at the start of a reduction
  y(i) = exp(A(i), {i})
                   ^
help: write sum({i,j}, A(i,j))

cannot read the statement: comparisons cannot be chained
  y(i) = a(i) < b(i) < c(i)
                     ^
help: write a < b and b < c

cannot read the statement: a second '='
  y(i) = a(i) = b(i)
              ^
help: compare with ==

cannot read the statement: ';' has no meaning here
  y(i) = a(i); z(i) = b(i)
             ^
help: give one statement at a time

cannot read the statement: 'A' has 2 modes elsewhere, but 1 here
  y(i) = A(i,j) + A(i)
                  ^

'y' is both the result and an operand
  y(i) = y(i) + A(i,j) * x(j)
         ^
help: write y(i) += ... to add to what y holds, or give the result another name

cannot read the statement: 'i' is an index variable, so it cannot be a tensor too
  y(i) = i(j)
         ^
help: rename one of them

cannot read the statement: 'i' is an index variable, so it cannot be a tensor too
  i(i) = a(i)
  ^
help: rename one of them

'j' is bound by a reduction, but is also used outside it
  y(i) = max(j, A(i,j)) + B(i,j)
         ^
help: use another name for the variable of the reduction, or leave it to the implicit sum over j

'i' is bound by a reduction, but is also used outside it
  y(i) = max(i, A(i,j))
         ^
help: use another name for the variable of the reduction, or leave it to the implicit sum over i

'j' is bound by two reductions, one within the other
  y(i) = max(j, min(j, A(i,j)) * x(j))
                ^
help: use two variables

cannot read the statement: expected ')' after 'j'
  y(i) = A(i,j * x(j]
               ^
help: a tensor is followed by index variables, with commas between them

cannot read the statement: expected ']' after 'i'
  y[i) = a(i)
     ^
help: a tensor is followed by index variables, with commas between them

cannot read the statement: the number does not fit in 64 bits
  y(i) = 99999999999999999999999
         ^
help: write it as a float: 1e30

cannot read the statement: complex takes two real numbers
  y(i) = complex(a(i), 2)
         ^
help: write complex(1, 2) or 1 + 2j

cannot read the statement: '.' has no meaning here
  y(i) = np.exp(a(i))
           ^
help: a function is written without its module: exp(x)

cannot read the statement: 'k' is an index variable, not a value
  y(i) = min(j, k) * A(j,k)
                ^
help: pass a tensor that holds 0, 1, 2, ..., and write it as t(k)

cannot read the statement: ':' has no meaning here
  y(i) = A(i):2
             ^
help: take slices of a tensor before it enters the statement

cannot read the statement: expected a value after '('
  y(i) = ()
          ^

cannot read the statement: the reduction 'max' takes variables and one expression
  y(i) = max(i)
         ^
help: write max(j, A(i,j)), or max[i] for a tensor of that name

cannot read the statement: expected a value after '('
  y(i) = sum(, a(i))
             ^

cannot read the statement: expected an operator after ')'
  y(i) = A(i)(j)
             ^

cannot read the statement: '!' has no meaning here
  y(i) = !a(i)
         ^
help: write not a
"""


def refusals() -> list[tuple[str, str]]:
    """Pairs of a statement and the whole text of its refusal."""
    blocks = REFUSALS.strip().split("\n\n")
    return [(block.split("\n")[1][2:], block) for block in blocks]


@pytest.mark.parametrize(("statement", "expected"), refusals(), ids=[statement for statement, _ in refusals()])
def test_refusal(statement: str, expected: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse(statement)
    assert str(caught.value) == expected


def test_every_refusal_is_listed_once() -> None:
    statements = [statement for statement, _ in refusals()]
    assert len(set(statements)) == len(statements) >= 50


@pytest.mark.parametrize("statement", ["", "   "])
def test_an_empty_statement_is_refused(statement: str) -> None:
    with pytest.raises(NotationError, match="it is empty"):
        parse(statement)


def test_a_statement_over_two_lines_is_shown_on_one() -> None:
    with pytest.raises(NotationError) as caught:
        parse("y(i) = A(i,j)\n\t* x(j) $")
    assert str(caught.value) == (
        "cannot read the statement: '$' has no meaning here\n"
        "  y(i) = A(i,j)  * x(j) $\n"
        "                        ^"
    )  # fmt: skip


@pytest.mark.parametrize(
    "right", ["(" * 200 + "a(i)" + ")" * 200, "-" * 200 + "a(i)", "a(i)" + "**b(i)" * 200, "a(i)" + " - b(i) + c(i)" * 50, "abs(" * 200]
)
def test_deep_nesting_is_refused_before_the_recursion_limit(right: str) -> None:
    with pytest.raises(NotationError, match="it is nested more than 80 deep"):
        parse(f"y(i) = {right}")


def test_declare_refuses_another_order() -> None:
    with pytest.raises(NotationError) as caught:
        declare(parse("y(i) = A(i,j,k) * x(j)").assign, {"A": placeholder("A", 2)})
    assert str(caught.value) == "A has 2 modes, but A(i,j,k) gives it 3\n  y(i) = A(i,j,k) * x(j)"


def test_declare_refuses_a_tensor_that_is_not_there() -> None:
    with pytest.raises(NotationError) as caught:
        declare(parse("y(i) = A(i,j) * x(j)").assign, {"B": placeholder("B", 2)})
    assert str(caught.value) == "the statement has no tensor 'B'; it has y, A, x\n  y(i) = A(i,j) * x(j)"


def test_two_tensors_of_one_name_are_refused() -> None:
    assign = parse("y(i) = A(i) + A(i)").assign
    first, second = assign.rhs.args  # type: ignore[attr-defined]
    other = TensorVar("A", 1, first.tensor.format, first.tensor.dtype, fill=1)
    mixed = type(assign)(assign.lhs, type(assign.rhs)("add", (first, type(second)(other, second.indices))))
    with pytest.raises(NotationError) as caught:
        close_over(mixed)
    assert str(caught.value) == "'A' stands for two different tensors\n  y(i) = A(i) + A(i)\nhelp: rename one of them"
