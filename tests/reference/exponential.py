"""Coefficients of exp_lanes in kernel/simd.hpp: (e^f - 1 - f) / f^2 on [-ln 2 / 2, ln 2 / 2] by Chebyshev interpolation."""
import numpy as np
from numpy.polynomial import chebyshev, polynomial

half = np.log(2) / 2 * 1.0005
f = half * np.cos(np.pi * (np.arange(4001) + 0.5) / 4001)
series = sum(f**k / np.prod(np.arange(1.0, k + 3)) for k in range(18))
for degree in (3, 4, 5):
    c = chebyshev.cheb2poly(chebyshev.chebfit(f / half, series, degree)) / half ** np.arange(degree + 1)
    c = c.astype(np.float32)
    error = np.abs((1 + f + f * f * polynomial.polyval(f, c.astype(float))) / np.exp(f) - 1).max()
    print(degree, f"{error:.1e}", [f"{v:.9g}f" for v in c])

# The same in double: fitted with more digits than it has.
import mpmath

mpmath.mp.dps = 40
half = mpmath.log(2) / 2 * mpmath.mpf('1.0005')


def remainder(f):
    return mpmath.nsum(lambda k: f**k / mpmath.factorial(k + 2), [0, 30])


for degree in (8, 9, 10):
    c, bound = mpmath.chebyfit(remainder, [-half, half], degree + 1, error=True)
    c = [float(v) for v in c]  # the highest power first
    worst = max(abs((1 + f + f * f * mpmath.polyval([mpmath.mpf(v) for v in c], f)) / mpmath.exp(f) - 1)
                for f in (half * k / 500 for k in range(-500, 501)))
    print(degree, mpmath.nstr(worst, 2), [f'{v:.17g}' for v in c])
