"""Statements on storages: a problem is planned, compiled, bound to arrays and called. Chains, conversions, dispatch, explanations."""
