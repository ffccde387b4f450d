"""Compile text, keep the result, load it: compilers, the kernel cache, libraries and their threads."""
