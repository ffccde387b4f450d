"""What to write instead of attributes that NumPy and SciPy users may try and that tensors do not offer."""

from __future__ import annotations

# What has the same name elsewhere.
_ELSEWHERE = {
    "np.{}(A)": "sqrt sin cos tan arcsin arctan sinh tanh expm1 log1p floor ceil trunc sign",
    "to_scipy().{}()": "todia tolil todok",
    "to_scipy().{}(...)": "resize",
    "to_numpy().{}()": "tolist tobytes",
    "to_numpy().{}": "strides flags",
}

INSTEAD: dict[str, str] = {
    "A": "to_numpy()",
    "todense": "to_numpy()",
    "indptr": 'arrays["pos1"]',
    "indices": 'arrays["crd1"]',
    "data": 'arrays["values"]',
    "row": 'to("coo").arrays["crd0"]',
    "col": 'to("coo").arrays["crd1"]',
    "coords": 'to("coo").arrays',
    "getformat": "format",
    "getnnz": "nnz",
    "get_shape": "shape",
    "getrow": "A[i]",
    "getcol": "A[:, j]",
    "multiply": "A * B",
    "power": "A ** n",
    "maximum": "sl.maximum(A, B)",
    "minimum": "sl.minimum(A, B)",
    "setdiag": "a builder: B = A.builder(), B[i, i] = values, A = B.build()",
    "sort_indices": "nothing: stored coordinates are always sorted",
    "has_sorted_indices": "nothing: stored coordinates are always sorted",
    "has_canonical_format": "nothing: stored coordinates are always sorted and unique",
    "fill_value": "fill",
    "numpy": "to_numpy()",
    "cpu": "to_host()",
    "cuda": "to_device()",
    "get": "to_numpy()",
    "H": "A.conj().T",
    **{name: text.format(name) for text, names in _ELSEWHERE.items() for name in names.split()},
}


def missing_attribute(kind: str, name: str) -> AttributeError:
    """The error for an attribute that does not exist, with what to write instead if it is known."""
    instead = INSTEAD.get(name)
    return AttributeError(f"{kind!r} object has no attribute {name!r}" + (f"; write {instead}" if instead else ""))
