"""Files: Matrix Market, FROSTT, and NumPy's archives and arrays."""
