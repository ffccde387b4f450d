"""What the operator ``hash`` computes.

    hash(key, shift) = (key * HASH_FACTOR modulo 2**64) >> shift

The factor is 2**64 over the golden ratio, made odd: the leading bits of the product depend on all bits of the key, and near keys come
to stand far apart (Knuth, The Art of Computer Programming, 6.4). With a shift of 64 - b the hash has b bits.
"""

from __future__ import annotations

HASH_FACTOR = 0x9E3779B97F4A7C15
