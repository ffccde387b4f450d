"""Lowering: from concrete index notation to the loop IR."""
