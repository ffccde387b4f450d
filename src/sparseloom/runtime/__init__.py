"""Compile C text, keep it, and call it: the toolchain, the kernel cache and the calling convention."""
