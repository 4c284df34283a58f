"""Prints h_n to 17 digits from the modified Bessel functions of mpmath, for tests/geometry/embedding_dimension.cpp.

    python3 tests/reference/embedding_dimension.py

    h_n = ln Gamma(n/2) + v ln(2/n) + ln I_v(n) - n I_{v+1}(n) / I_v(n),   v = n/2 - 1
"""
from mpmath import besseli, log, loggamma, mp, mpf, nstr, sqrt

mp.dps = 50
print("coefficient", nstr(log((sqrt(mpf(5)) + 1) / 2) / 2, 20))
for n in [1, 2, 3, 7, 50, 100, 200, 1000, 10000, 100000]:
    n = mpf(n)
    v = n / 2 - 1
    i = besseli(v, n, maxterms=10**6)
    h = loggamma(n / 2) + v * log(2 / n) + log(i) - n * besseli(v + 1, n, maxterms=10**6) / i
    print(int(n), nstr(h, 17))
