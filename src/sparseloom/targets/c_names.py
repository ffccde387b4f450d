"""C identifiers for the names of a kernel.

A name stays as it is where C allows it. What does not may be a keyword, a name of a standard header, one of our own, or not
ASCII; it is spelled in another way, the same one each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparseloom.core.names import Names
from sparseloom.loops.nodes import Array

# Keywords, and what stdint, stdlib, string, math, stdbool, complex and time declare or define.
_TAKEN = """
BIG_ENDIAN BYTE_ORDER CLOCKS_PER_SEC CMPLX CMPLXF CMPLXL EXIT_FAILURE EXIT_SUCCESS FD_CLR FD_ISSET FD_SET FD_SETSIZE
FD_ZERO HUGE_VAL HUGE_VALF HUGE_VALL I INFINITY LITTLE_ENDIAN MATH_ERREXCEPT MATH_ERRNO MB_CUR_MAX NAN NFDBITS NULL
PDP_ENDIAN PTRDIFF_MAX PTRDIFF_MIN RAND_MAX SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIZE_MAX TIMER_ABSTIME TIME_UTC WINT_MAX
WINT_MIN a64l abort abs acos acosf acosh acoshf acoshl acosl alignas aligned_alloc alignof alloca asctime asctime_r asin
asinf asinh asinhf asinhl asinl asm at_quick_exit atan atan2 atan2f atan2l atanf atanh atanhf atanhl atanl atexit atof
atoi atol atoll auto basename bcmp bcopy bool break bsearch bzero cabs cabsf cabsl cacos cacosf cacosh cacoshf cacoshl
cacosl calloc canonicalize carg cargf cargl case casin casinf casinh casinhf casinhl casinl catan catanf catanh catanhf
catanhl catanl cbrt cbrtf cbrtl ccos ccosf ccosh ccoshf ccoshl ccosl ceil ceilf ceill cexp cexpf cexpl char cimag cimagf
cimagl clearenv clock clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clog clog10 clog10f
clog10l clogf clogl complex conj conjf conjl const constexpr continue copysign copysignf copysignl cos cosf cosh coshf
coshl cosl cpow cpowf cpowl cproj cprojf cprojl creal crealf creall csin csinf csinh csinhf csinhl csinl csqrt csqrtf
csqrtl ctan ctanf ctanh ctanhf ctanhl ctanl ctime ctime_r daylight default difftime div do double drand48 drand48_data
drand48_r drem dremf dreml dysize ecvt ecvt_r else enum environ erand48 erand48_r erf erfc erfcf erfcl erff erfl errno
exit exp exp10 exp10f exp10l exp2 exp2f exp2l expf expl explicit_bzero expm1 expm1f expm1l extern fabs fabsf fabsl false
fcvt fcvt_r fd_mask fd_set fdim fdimf fdiml ffs ffsl ffsll finite finitef finitel float floor floorf floorl fma fmaf
fmal fmax fmaxf fmaximum fmaxl fmin fminf fminimum fminl fmod fmodf fmodl for fpclassify free frexp frexpf frexpl gamma
gammaf gammal gcvt getenv getloadavg getpayload getsubopt gmtime gmtime_r goto hypot hypotf hypotl i386 if ilogb ilogbf
ilogbl imaginary imaxabs index initstate initstate_r inline int isfinite isgreater isgreaterequal isinf isinff isinfl
isless islessequal islessgreater isnan isnanf isnanl isnormal isunordered itimerspec j0 j0f j0l j1 j1f j1l jn jnf jnl
jrand48 jrand48_r l64a labs lcong48 lcong48_r ldexp ldexpf ldexpl ldiv lgamma lgamma_r lgammaf lgammaf_r lgammal
lgammal_r linux llabs lldiv llogb llrint llrintf llrintl llround llroundf llroundl localtime localtime_r log log10
log10f log10l log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf logl long lrand48 lrand48_r lrint lrintf lrintl
lround lroundf lroundl main malloc math_errhandling mblen mbstowcs mbtowc memccpy memchr memcmp memcpy memmem memmove
mempcpy memset mkdtemp mkstemp mkstemps mktemp mktime modf modff modfl mrand48 mrand48_r nan nanf nanl nanosleep
nearbyint nearbyintf nearbyintl nextafter nextafterf nextafterl nextdown nexttoward nexttowardf nexttowardl nextup
noreturn nrand48 nrand48_r nullptr on_exit posix_memalign pow pow10 powf powl printf pselect putenv puts qecvt qecvt_r
qfcvt qfcvt_r qgcvt qsort qsort_r quick_exit rand rand_r random random_data random_r rawmemchr realloc reallocarray
realpath register remainder remainderf remainderl remquo remquof remquol restrict return rindex rint rintf rintl round
roundeven roundf roundl rpmatch scalb scalbf scalbl scalbln scalblnf scalblnl scalbn scalbnf scalbnl scanf secure_getenv
seed48 seed48_r select setenv setstate setstate_r short sigevent signbit signed signgam significand significandf
significandl sin sincos sincosf sinf sinh sinhf sinhl sinl sizeof sqrt sqrtf sqrtl srand srand48 srand48_r srandom
srandom_r static static_assert stpcpy stpncpy strcasecmp strcasecmp_l strcat strchr strchrnul strcmp strcoll strcoll_l
strcpy strcspn strdup strerror strerror_l strerror_r strftime strftime_l strlen strncasecmp strncasecmp_l strncat
strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtok strtok_r strtol
strtold strtold_l strtoll strtoq strtoul strtoull strtouq struct strverscmp strxfrm strxfrm_l switch system tan tanf
tanh tanhf tanhl tanl tgamma tgammaf tgammal thread_local time timegm timelocal timer_create timer_delete
timer_getoverrun timer_gettime timer_settime timespec timespec_get timeval timezone tm totalorder true trunc truncf
truncl typedef typeof typeof_unqual tzname tzset u_char u_int u_long u_short uint ulong union unix unsetenv unsigned
ushort valloc void volatile wcstombs wctomb while y0 y0f y0l y1 y1f y1l yn ynf ynl
"""

RESERVED: frozenset[str] = frozenset(_TAKEN.split())

# Whole families that headers own, beside the names above.
_RESERVED_FORMS = re.compile(
    r".*_t|_.*|(U?INT(PTR|MAX|_FAST|_LEAST|[0-9])|CLOCK_|FP_|M_|W[A-Z]{4}|be[0-9]|le[0-9]|htobe|htole|arc4|omp_|pthread_).*"
)


def legal(name: str) -> str:
    """``name`` as a C identifier: other characters by their code, reserved names with an underscore behind."""
    spelled = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):04x}" for c in name)
    if not spelled or not spelled[0].isalpha():
        spelled = "v" + spelled
    return spelled + "_" if spelled in RESERVED or _RESERVED_FORMS.fullmatch(spelled) else spelled


def remark(text: str) -> str:
    """A comment behind a line of C, in ASCII. It takes no second line: there is no line break in it and no backslash at its end."""
    return "  // " + " ".join("".join(c if c.isascii() else f"u{ord(c):04x}" for c in text).split()).rstrip(" \\")


class CNames:
    """The identifiers of one kernel. Scalars go by name; arrays by name and type, for disjoint scopes may differ."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._names = Names(taken)
        self._scalars: dict[str, str] = {}
        self._arrays: dict[Array, str] = {}

    def fresh(self, wish: str) -> str:
        """An identifier that nothing else has."""
        return self._names.fresh(legal(wish))

    def scalar(self, name: str) -> str:
        """The identifier of a scalar."""
        if name not in self._scalars:
            self._scalars[name] = self.fresh(name)
        return self._scalars[name]

    def array(self, array: Array) -> str:
        """The identifier of an array."""
        if array not in self._arrays:
            self._arrays[array] = self.fresh(array.name)
        return self._arrays[array]
