"""Index notation (what to compute) and concrete index notation (in which loops)."""
