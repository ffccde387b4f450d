"""What to write instead of attributes that NumPy and SciPy users may try and that tensors do not offer."""

from __future__ import annotations

# What has the same name elsewhere.
_ELSEWHERE = {
    "np.{}(A)": "sqrt sin cos tan arcsin arctan sinh tanh expm1 log1p floor ceil trunc sign",
    "to_scipy().{}()": "todia tolil todok",
    "to_scipy().{}(...)": "resize argmax argmin",
    "to_numpy().{}()": "tolist tobytes",
    "to_numpy().{}(...)": "argsort cumsum std var round",
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
    "diagonal": 'sl.evaluate("d(i) = A(i,i)", A=A)',
    "trace": 'sl.evaluate("t = A(i,i)", A=A)',
    "setdiag": "to_scipy(), change that, and asarray it again: tensors do not change",
    "eliminate_zeros": 'to("dense").to(A.format), which keeps only values other than the fill',
    "sort_indices": "nothing: stored coordinates are always sorted",
    "sum_duplicates": "nothing: repeated coordinates were summed when the tensor was made",
    "has_sorted_indices": "nothing: stored coordinates are always sorted",
    "has_canonical_format": "nothing: stored coordinates are always sorted and unique",
    "reshape": "to_numpy().reshape(...) or to_scipy().reshape(...)",
    "flatten": "to_numpy().ravel()",
    "ravel": "to_numpy().ravel()",
    "squeeze": "A[0] or A[:, 0]",
    "clip": "sl.minimum(sl.maximum(A, low), high)",
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
