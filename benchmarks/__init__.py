"""Measurements: kernels beside hand-written C and other libraries, what users wait for, and the page that is made of the numbers."""
