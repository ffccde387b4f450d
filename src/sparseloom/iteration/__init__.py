"""Iteration: where an expression has entries, and how its operands' levels are walked together."""
