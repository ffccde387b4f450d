"""The ground floor: trees, names, dtypes, algebra and errors. It imports nothing of Sparseloom's."""
