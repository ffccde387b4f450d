"""What to write instead of attributes that NumPy and SciPy users may try and that tensors do not offer."""

from __future__ import annotations

_FUNCTIONS = "sqrt sin cos tan arcsin arctan sinh tanh expm1 log1p floor ceil trunc sign".split()

INSTEAD: dict[str, str] = {
    "A": "to_numpy()",
    "todense": "to_numpy()",
    "indptr": 'arrays["pos1"]',
    "indices": 'arrays["crd1"]',
    "data": 'arrays["values"]',
    "row": 'to("coo").arrays["crd0"]',
    "col": 'to("coo").arrays["crd1"]',
    "coords": 'to("coo").arrays',
    "todia": "to_scipy().todia()",
    "tolil": "to_scipy().tolil()",
    "todok": "to_scipy().todok()",
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
    "resize": "to_scipy().resize(...)",
    "flatten": "to_numpy().ravel()",
    "ravel": "to_numpy().ravel()",
    "squeeze": "A[0] or A[:, 0]",
    "tolist": "to_numpy().tolist()",
    "tobytes": "to_numpy().tobytes()",
    "strides": "to_numpy().strides",
    "flags": "to_numpy().flags",
    "argmax": "to_scipy().argmax(...)",
    "argmin": "to_scipy().argmin(...)",
    "argsort": "to_numpy().argsort(...)",
    "cumsum": "to_numpy().cumsum(...)",
    "clip": "sl.minimum(sl.maximum(A, low), high)",
    "std": "to_numpy().std(...)",
    "var": "to_numpy().var(...)",
    "round": "to_numpy().round(...)",
    "fill_value": "fill",
    "numpy": "to_numpy()",
    "cpu": "nothing: the tensor is in main memory",
    "H": "A.conj().T",
    **{name: f"np.{name}(A)" for name in _FUNCTIONS},
}


def missing_attribute(kind: str, name: str) -> AttributeError:
    """The error for an attribute that does not exist, with what to write instead if it is known."""
    instead = INSTEAD.get(name)
    return AttributeError(f"{kind!r} object has no attribute {name!r}" + (f"; write {instead}" if instead else ""))
