"""Rows of numbers as text, made in C: a line per row, coordinates counting from 1, every value as Python's ``repr`` spells it.

    coordinates (11, 6), value -325.0      ->      12 7 -325.0\\n

A double gets the shortest digits that read back as itself, and of these the nearest, by Giulietti's method (The Schubfach way to render
doubles, 2021): of the multiples of a power of ten next to it, those that are nearer to it than its neighbours are. It needs the powers of
ten to 128 bits, rounded up.
"""

from __future__ import annotations

from array import array
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import FLOAT64, INT64, kind_of
from sparseloom.programs.calling import address_of
from sparseloom.toolchain.libraries import load_routine

UINT64 = np.dtype(np.uint64)
_LEAST_POWER, _MOST_POWER = -292, 324
_LONGEST = 24  # letters of a double: -2.2250738585072014e-308
_REAL, _SIGNED, _UNSIGNED = range(3)

SOURCE = r"""
#include <stdint.h>
#include <string.h>

static const char PAIRS[] =
  "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
  "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

// The digits of a number; returns where they end.
static char *unsigned_integer(char *at, uint64_t number) {
  char digits[20];
  char *first = digits + 20;
  while (number >= 100) { first -= 2; memcpy(first, PAIRS + 2 * (number % 100), 2); number /= 100; }
  if (number >= 10) { first -= 2; memcpy(first, PAIRS + 2 * number, 2); } else *--first = (char)('0' + number);
  memcpy(at, first, digits + 20 - first);
  return at + (digits + 20 - first);
}

static char *integer(char *at, int64_t number) {
  if (number >= 0) return unsigned_integer(at, (uint64_t)number);
  *at++ = '-';
  return unsigned_integer(at, -(uint64_t)number);
}

// The product of a power of ten and a number, to the bits above, of which the last tells whether there is more.
static uint64_t to_odd(const uint64_t *ten, uint64_t number) {
  const uint64_t carried = (uint64_t)(((unsigned __int128)ten[1] * number) >> 64);
  const unsigned __int128 product = (unsigned __int128)ten[0] * number + carried;
  return (uint64_t)(product >> 64) | ((uint64_t)product > 1);
}

// The shortest digits that stand for mantissa * 2^exponent, and their power of ten.
static uint64_t shortest(uint64_t mantissa, int64_t exponent, int is_power, const uint64_t *tens, int64_t *power) {
  const int64_t ten = (exponent * 1262611 - (is_power ? 524031 : 0)) >> 22;
  const int64_t shift = exponent + ((-ten * 1741647) >> 19) + 1;
  const uint64_t *const scale = tens + 2 * (292 - ten);
  const int is_odd = (int)(mantissa & 1);
  const uint64_t low = to_odd(scale, (4 * mantissa - 2 + is_power) << shift) + is_odd;
  const uint64_t here = to_odd(scale, (4 * mantissa) << shift);
  const uint64_t high = to_odd(scale, (4 * mantissa + 2) << shift) - is_odd;
  const uint64_t below = here / 4;
  if (below >= 10) {
    const uint64_t coarse = below / 10;
    const int down = low <= 40 * coarse, up = 40 * coarse + 40 <= high;
    if (down != up) { *power = ten + 1; return coarse + up; }
  }
  const int down = low <= 4 * below, up = 4 * below + 4 <= high;
  *power = ten;
  if (down != up) return below + up;
  const uint64_t middle = 4 * below + 2;
  return below + (here > middle || (here == middle && (below & 1)));
}

static char *literally(char *at, const char *word) { const size_t length = strlen(word); memcpy(at, word, length); return at + length; }

static char *decimal(char *at, double value, const uint64_t *tens) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
  const int64_t biased = (int64_t)(bits >> 52 & 2047);
  if (biased == 2047 && fraction) return literally(at, "nan");
  if (bits >> 63) *at++ = '-';
  if (biased == 2047) return literally(at, "inf");
  if (!biased && !fraction) return literally(at, "0.0");
  int64_t power;
  uint64_t digits = biased ? shortest(fraction | (uint64_t)1 << 52, biased - 1075, !fraction && biased > 1, tens, &power)
                           : shortest(fraction, -1074, 0, tens, &power);
  while (digits % 10 == 0) { digits /= 10; power++; }
  char word[20];
  const int64_t count = unsigned_integer(word, digits) - word, point = count + power;
  if (point > 16 || point < -3) {
    *at++ = word[0];
    if (count > 1) { *at++ = '.'; memcpy(at, word + 1, count - 1); at += count - 1; }
    const int64_t exponent = point - 1, size = exponent < 0 ? -exponent : exponent;
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    if (size < 10) *at++ = '0';
    return unsigned_integer(at, (uint64_t)size);
  }
  if (point <= 0) {
    at = literally(at, "0.");
    memset(at, '0', -point);
    memcpy(at - point, word, count);
    return at - point + count;
  }
  if (point >= count) {
    memcpy(at, word, count);
    memset(at + count, '0', point - count);
    return literally(at + point, ".0");
  }
  memcpy(at, word, point);
  at[point] = '.';
  memcpy(at + point + 1, word + point, count - point);
  return at + count + 1;
}

// words: how many rows, order, words of a value, what they are, powers of ten, coordinates (one row of so many per mode), how far these lie
// apart, values, text, and its length, which is written.
int32_t lines(void **args) {
  const int64_t *words = (const int64_t *)args;
  const int64_t count = words[0], order = words[1], width = words[2], kind = words[3], stride = words[6];
  const uint64_t *tens = (const uint64_t *)words[4];
  const int64_t *coordinates = (const int64_t *)words[5];
  const char *values = (const char *)words[7];
  char *const text = (char *)words[8];
  char *at = text;
  for (int64_t row = 0; row < count; row++) {
    for (int64_t mode = 0; mode < order; mode++) { at = integer(at, coordinates[mode * stride + row] + 1); *at++ = ' '; }
    for (int64_t word = 0; word < width; word++, values += 8, *at++ = ' ') {
      double real;
      uint64_t whole;
      memcpy(&real, values, 8);
      memcpy(&whole, values, 8);
      at = kind == 0 ? decimal(at, real, tens) : kind == 1 ? integer(at, (int64_t)whole) : unsigned_integer(at, whole);
    }
    at[-1] = '\n';
  }
  *(int64_t *)words[9] = at - text;
  return 1;
}
"""


@cache
def _tens() -> NDArray[np.uint64]:
    """The powers of ten from -292 to 324, each to 128 bits, rounded up."""
    made = [_rounded_up(power) for power in range(_LEAST_POWER, _MOST_POWER + 1)]
    return np.array([part for ten in made for part in (ten >> 64, ten & (2**64 - 1))], np.uint64)


def _rounded_up(power: int) -> int:
    above, below = (10**power, 1) if power >= 0 else (1, 10**-power)

    def shifted(shift: int) -> int:
        return -(-(above << max(shift, 0)) // (below << max(-shift, 0)))

    most = 128 - above.bit_length() + below.bit_length()
    return shifted(most) if shifted(most).bit_length() == 128 else shifted(most - 1)


def print_rows(coordinates: NDArray[np.int64], values: NDArray[Any]) -> memoryview | None:
    """The lines of rows, whose coordinates count from 0 and have a row for each mode; nothing where there is no compiler."""
    entry = load_routine(SOURCE, "lines")
    if entry is None:
        return None
    numbers, kind = _plain(values)
    order, count = coordinates.shape
    width = 2 if values.dtype.kind == "c" else 1
    longest = order * (len(str(int(coordinates.max(initial=0)) + 1)) + 1) + width * (_LONGEST + 1)
    given = np.ascontiguousarray(coordinates, INT64)
    text, length = np.empty(longest * count, np.uint8), array("q", [0])
    places = [address_of(_tens()), address_of(given), count, address_of(numbers), address_of(text), length.buffer_info()[0]]
    pack = array("q", [count, order, width, kind, *places])
    entry(pack.buffer_info()[0])
    return text[: length[0]].data


def _plain(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Values as numbers of 64 bits, and what they are."""
    match kind_of(values.dtype):
        case "c":
            return np.ascontiguousarray(values, np.complex128), _REAL
        case "u":
            return np.ascontiguousarray(values, UINT64), _UNSIGNED
        case "b" | "i":
            return np.ascontiguousarray(values, INT64), _SIGNED
    return np.ascontiguousarray(values, FLOAT64), _REAL
