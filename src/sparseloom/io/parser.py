"""Rows of numbers, parsed in C: as fast as the text can be read, and only where it is plain.

    12 7 -3.25e2\\n      coordinates in digits, values as decimals, blanks between, as many in every line

Whatever is written otherwise (a line too long or too short, ``inf``, a coordinate out of range, an integer of more than 64 bits) makes it
say nothing at all of the block, and whoever asked reads that block in the careful way, which takes all of it or tells the line.

Decimals become the nearest double by Eisel's and Lemire's method (Lemire, Number Parsing at a Gigabyte per Second, 2021), which needs the
powers of five to 128 bits; the few that it leaves open go to ``strtod``.
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import FLOAT64, INT64
from sparseloom.programs.calling import address_of
from sparseloom.toolchain.libraries import load_routine

_LARGEST = np.iinfo(np.int64).max
_LEAST_POWER, _MOST_POWER = -342, 308

SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int is_digit(unsigned char c) { return (unsigned char)(c - '0') <= 9; }
static inline int is_blank(unsigned char c) { return c == ' ' || c == '\t' || c == '\r'; }
static inline int is_end(const unsigned char *at, const unsigned char *end) { return at == end || is_blank(*at) || *at == '\n'; }

// The double nearest to digits * 10^power, as bits; 0 where the method leaves it open.
static int nearest(uint64_t digits, int64_t power, const uint64_t *fives, uint64_t *bits) {
  if (!digits) { *bits = 0; return 1; }
  if (power < -342 || power > 308) return 0;
  const int shift = __builtin_clzll(digits);
  const uint64_t high_five = fives[2 * (power + 342)], low_five = fives[2 * (power + 342) + 1];
  const unsigned __int128 product = (unsigned __int128)(digits << shift) * high_five;
  uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
  if ((high & 0x1FF) == 0x1FF) {
    const uint64_t more = (uint64_t)(((unsigned __int128)(digits << shift) * low_five) >> 64);
    low += more;
    high += more > low;
  }
  if (low == UINT64_MAX && (power < -27 || power > 55)) return 0;
  const int upper = (int)(high >> 63);
  uint64_t mantissa = high >> (upper + 9);
  int64_t exponent = ((217706 * power) >> 16) + 63 + upper - shift + 1023;
  if (exponent <= 0) return 0;
  if (low <= 1 && power >= -4 && power <= 23 && (mantissa & 3) == 1 && (mantissa << (upper + 9)) == high) mantissa &= ~(uint64_t)1;
  mantissa = (mantissa + (mantissa & 1)) >> 1;
  if (mantissa >= (uint64_t)2 << 52) { mantissa = (uint64_t)1 << 52; exponent++; }
  if (exponent >= 2047) return 0;
  *bits = (mantissa & ~((uint64_t)1 << 52)) | (uint64_t)exponent << 52;
  return 1;
}

// A decimal; returns where it ends, or NULL if it is none.
static const unsigned char *decimal(const unsigned char *at, const unsigned char *end, const uint64_t *fives, double *made) {
  const unsigned char *const word = at;
  uint64_t digits = 0, bits, above;
  int64_t power = 0, count = 0, given = 0, exponent = 0;
  const int negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  for (; at < end && is_digit(*at); at++, given++) {
    if (count < 19) { digits = digits * 10 + (*at - '0'); count += digits != 0; } else power++;
  }
  if (at < end && *at == '.') {
    for (at++; at < end && is_digit(*at); at++, given++) {
      if (count < 19) { digits = digits * 10 + (*at - '0'); count += digits != 0; power--; }
    }
  }
  if (!given) return NULL;
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    const int below = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end || !is_digit(*at)) return NULL;
    for (; at < end && is_digit(*at); at++) if (exponent < 100000) exponent = exponent * 10 + (*at - '0');
    power += below ? -exponent : exponent;
  }
  if (!is_end(at, end)) return NULL;
  int known = nearest(digits, power, fives, &bits);
  if (known && count == 19) known = nearest(digits + 1, power, fives, &above) && above == bits;  // there may be more digits than these
  if (!known) {
    char copy[512];
    char *last;
    if (at - word >= (int64_t)sizeof copy) return NULL;
    memcpy(copy, word, at - word);
    copy[at - word] = 0;
    *made = strtod(copy, &last);
    return last == copy + (at - word) ? at : NULL;
  }
  bits |= (uint64_t)negative << 63;
  memcpy(made, &bits, 8);
  return at;
}

// An integer of 64 bits; returns where it ends, or NULL if it is none.
static const unsigned char *integer(const unsigned char *at, const unsigned char *end, int64_t *made) {
  uint64_t digits = 0;
  const int negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  const unsigned char *const first = at;
  for (; at < end && is_digit(*at); at++) digits = digits * 10 + (*at - '0');
  if (at == first || at - first > 18 || !is_end(at, end)) return NULL;
  *made = negative ? -(int64_t)digits : (int64_t)digits;
  return at;
}

// words: text, its length, order, words of a value, whether they are integers, limits of coordinates, powers of five, room for rows,
// coordinates (one row of that room per mode), values, and the number of rows, which is written. Returns whether all of it is plain.
int32_t rows(void **args) {
  const int64_t *words = (const int64_t *)args;
  const unsigned char *at = (const unsigned char *)words[0], *const end = at + words[1];
  const int64_t order = words[2], width = words[3], integral = words[4], room = words[7];
  const int64_t *limits = (const int64_t *)words[5];
  const uint64_t *fives = (const uint64_t *)words[6];
  int64_t *coordinates = (int64_t *)words[8], *count = (int64_t *)words[10], row = 0;
  char *values = (char *)words[9];
  for (;; row++) {
    while (at < end && (is_blank(*at) || *at == '\n')) at++;
    if (at == end) break;
    if (row == room) return 0;
    for (int64_t mode = 0; mode < order; mode++) {
      uint64_t number = 0;
      const unsigned char *const first = at;
      for (; at < end && is_digit(*at); at++) number = number * 10 + (*at - '0');
      if (at == first || at - first > 18 || !is_end(at, end) || !number || number > (uint64_t)limits[mode]) return 0;
      coordinates[mode * room + row] = (int64_t)number - 1;
      while (at < end && is_blank(*at)) at++;
    }
    for (int64_t word = 0; word < width; word++, values += 8) {
      at = integral ? integer(at, end, (int64_t *)values) : decimal(at, end, fives, (double *)values);
      if (!at) return 0;
      while (at < end && is_blank(*at)) at++;
    }
    if (at < end && *at != '\n') return 0;
  }
  *count = row;
  return 1;
}
"""


@cache
def _fives() -> NDArray[np.uint64]:
    """The powers of five from -342 to 308, each to 128 bits: those below 1 rounded up, the others down."""
    made = [_rounded_up(5**-power, power) if power < 0 else _cut(5**power) for power in range(_LEAST_POWER, _MOST_POWER + 1)]
    return np.array([part for five in made for part in (five >> 64, five & (2**64 - 1))], np.uint64)


def _rounded_up(divisor: int, power: int) -> int:
    bits = (divisor - 1).bit_length()
    return 2 ** (bits + 127) // divisor + 1 if power >= -27 else _cut(2 ** (2 * bits + 128) // divisor + 1)


def _cut(number: int) -> int:
    """The highest 128 bits."""
    shift = number.bit_length() - 128
    return number >> shift if shift >= 0 else number << -shift


def parse_rows(
    text: bytes, order: int, shape: tuple[int, ...] | None, words: int, integral: bool
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Coordinates counting from 0, a row for each mode, and the values of a block of lines; nothing if it is not all plain."""
    entry = load_routine(SOURCE, "rows")
    if entry is None:
        return None
    room = len(text) // (2 * (order + words)) + 1  # a number takes one letter, and what follows it another
    coordinates, values = np.empty((order, room), INT64), np.empty((room, words), INT64 if integral else FLOAT64)
    limits, count = array("q", shape or [_LARGEST] * order), array("q", [0])
    given = np.frombuffer(text, np.uint8)
    words_of = [address_of(given), len(text), order, words, integral, limits.buffer_info()[0], address_of(_fives()), room]
    pack = array("q", [*words_of, address_of(coordinates), address_of(values), count.buffer_info()[0]])
    if entry(pack.buffer_info()[0]) != 1:
        return None
    return coordinates[:, : count[0]], values[: count[0]]
