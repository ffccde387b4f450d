"""A small program: the largest eigenvalue."""

import sparseloom as sl


def largest(a: sl.Tensor, rounds: int) -> float:
    x = sl.ones(a.shape[0])
    for _ in range(rounds):
        x = a @ x
        x = x / x.norm()
    return float((a @ x).norm())


print(largest(sl.eye(3), 10))
