"""Statements as callables on tensors: ``Kernel``, ``evaluate``, ``program`` and ``einsum``."""
