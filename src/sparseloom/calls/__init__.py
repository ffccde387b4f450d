"""Statements as callables on tensors: ``Kernel``, ``evaluate``, ``program`` and ``einsum``."""

import sparseloom.surface  # noqa: F401 - what they give has the methods of tensors
