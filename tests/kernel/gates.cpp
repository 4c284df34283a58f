#include <cmath>
#include <isogloss/kernel/gates.hpp>
#include <limits>

#include "catch.hpp"
#include "memory.hpp"

using namespace isogloss;

namespace {

template <class T> constexpr double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-14;

double s(double x) { return 1 / (1 + std::exp(-x)); }

// The local derivative as the quantity needs it.
template <bool squared> double local(double d) { return squared ? d * d : d; }

// Whether two numbers agree, for values of order 1.
template <class T> bool agree(T got, double expected) {
    return std::abs(double(got) - expected) <= tolerance<T> * (1 + std::abs(expected));
}

constexpr Index rows = 3;

}  // namespace

TEMPLATE_TEST_CASE("The tanh kernels", "[kernel][gates]", float, double) {
    using T = TestType;
    for (const Index n : lengths()) {
        CAPTURE(n);
        const auto z = Memory<T>::random(n, n % 4, 1), dh = Memory<T>::random(n, 1, 2);
        Memory<T> h(n, 3), dz(n, 2), phi(n, 1);
        kernel::tanh_forward(n, z.in(), h.out());
        REQUIRE(h.written());
        kernel::tanh_backward<false>(n, h.in(), dh.in(), dz.out());
        kernel::tanh_backward<true>(n, h.in(), dh.in(), phi.out());
        REQUIRE((dz.written() && phi.written()));
        bool right = true;
        for (Index i = 0; i < n; ++i) {
            const double t = std::tanh(double(z[i])), d = 1 - t * t;
            right = right && agree(h[i], t) && agree(dz[i], d * dh[i]) && agree(phi[i], d * d * dh[i]);
        }
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE_SIG("The LSTM kernels", "[kernel][gates]", ((class T, bool squared), T, squared),
                       (float, false), (float, true), (double, false), (double, true)) {
    for (Index n = 1; n <= 70; ++n) {
        CAPTURE(n);
        const Index all = rows * n;
        const auto sums = Memory<T>::random(4 * all, 1, 1), before = Memory<T>::random(all, 2, 2),
                   dh = Memory<T>::random(all, 3, 3), dc_in = Memory<T>::random(all, 1, 4);
        auto z = sums, dc = dc_in;
        Memory<T> c(all, 1), tc(all, 2), h(all, 3), dz(4 * all, 1);
        kernel::lstm_forward(rows, n, z.out(), before.in(), c.out(), tc.out(), h.out());
        REQUIRE((z.written() && c.written() && tc.written() && h.written()));
        kernel::lstm_backward<squared>(rows, n, z.in(), before.in(), tc.in(), dh.in(), dc.out(), dz.out());
        REQUIRE((dz.written() && dc.written()));
        bool right = true;
        for (Index r = 0; r < rows; ++r)
            for (Index j = 0; j < n; ++j) {
                const auto gate = [&](Index k) { return r * 4 * n + k * n + j; };
                const Index at = r * n + j;
                const double i = s(sums[gate(0)]), f = s(sums[gate(1)]), g = std::tanh(double(sums[gate(2)])),
                             o = s(sums[gate(3)]), cell = f * before[at] + i * g, t = std::tanh(cell);
                right = right && agree(z[gate(0)], i) && agree(z[gate(1)], f) && agree(z[gate(2)], g) &&
                        agree(z[gate(3)], o) && agree(c[at], cell) && agree(tc[at], t) && agree(h[at], o * t);
                const double d = dc_in[at] + local<squared>(o * (1 - t * t)) * dh[at];
                right = right && agree(dz[gate(0)], local<squared>(g * i * (1 - i)) * d) &&
                        agree(dz[gate(1)], local<squared>(before[at] * f * (1 - f)) * d) &&
                        agree(dz[gate(2)], local<squared>(i * (1 - g * g)) * d) &&
                        agree(dz[gate(3)], local<squared>(t * o * (1 - o)) * dh[at]) &&
                        agree(dc[at], local<squared>(f) * d);
            }
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE_SIG("The GRU kernels", "[kernel][gates]", ((class T, bool squared), T, squared),
                       (float, false), (float, true), (double, false), (double, true)) {
    for (Index n = 1; n <= 70; ++n) {
        CAPTURE(n);
        const Index all = rows * n;
        const auto sums = Memory<T>::random(2 * all, 1, 1), candidate = Memory<T>::random(all, 1, 2),
                   before = Memory<T>::random(all, 2, 3), dh = Memory<T>::random(all, 3, 4),
                   dreset = Memory<T>::random(all, 3, 5), start = Memory<T>::random(all, 1, 6);
        auto gates = sums, q = candidate, dbefore = start;
        Memory<T> reset(all, 2), h(all, 3), dgates(2 * all, 1), dq(all, 1);
        kernel::gru_gates_forward(rows, n, gates.out(), before.in(), reset.out());
        REQUIRE((gates.written() && reset.written()));
        kernel::gru_state_forward(rows, n, gates.in(), q.out(), before.in(), h.out());
        REQUIRE((q.written() && h.written()));
        T *const to_gates = dgates.out(), *const to_before = dbefore.out();
        kernel::gru_state_backward<squared>(rows, n, gates.in(), q.in(), before.in(), dh.in(), to_gates,
                                            dq.out(), to_before);
        kernel::gru_gates_backward<squared>(rows, n, gates.in(), before.in(), dreset.in(), to_gates,
                                            to_before);
        REQUIRE((dgates.written() && dq.written() && dbefore.written()));
        bool right = true;
        for (Index r = 0; r < rows; ++r)
            for (Index j = 0; j < n; ++j) {
                const Index at = r * n + j, iz = r * 2 * n + j, ir = iz + n;
                const double z = s(sums[iz]), keep = s(sums[ir]), t = std::tanh(double(candidate[at])),
                             old = before[at];
                right = right && agree(gates[iz], z) && agree(gates[ir], keep) &&
                        agree(reset[at], keep * old) && agree(q[at], t) &&
                        agree(h[at], z * old + (1 - z) * t);
                right = right && agree(dgates[iz], local<squared>((old - t) * z * (1 - z)) * dh[at]) &&
                        agree(dgates[ir], local<squared>(old * keep * (1 - keep)) * dreset[at]) &&
                        agree(dq[at], local<squared>((1 - z) * (1 - t * t)) * dh[at]) &&
                        agree(dbefore[at],
                              start[at] + local<squared>(z) * dh[at] + local<squared>(keep) * dreset[at]);
            }
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE_SIG("The highway kernels", "[kernel][gates]", ((class T, bool squared), T, squared),
                       (float, false), (float, true), (double, false), (double, true)) {
    for (Index n = 1; n <= 70; ++n) {
        CAPTURE(n);
        const Index all = rows * n;
        const auto sums = Memory<T>::random(2 * all, 1, 1), before = Memory<T>::random(all, 2, 2),
                   ds = Memory<T>::random(all, 3, 3), start = Memory<T>::random(all, 1, 4);
        auto z = sums, dbefore = start;
        Memory<T> state(all, 2), dz(2 * all, 3);
        kernel::highway_forward(rows, n, z.out(), before.in(), state.out());
        REQUIRE((z.written() && state.written()));
        kernel::highway_backward<squared>(rows, n, z.in(), before.in(), ds.in(), dz.out(), dbefore.out());
        REQUIRE((dz.written() && dbefore.written()));
        bool right = true;
        for (Index r = 0; r < rows; ++r)
            for (Index j = 0; j < n; ++j) {
                const Index at = r * n + j, ih = r * 2 * n + j, ig = ih + n;
                const double h = std::tanh(double(sums[ih])), gate = s(sums[ig]), old = before[at];
                right = right && agree(z[ih], h) && agree(z[ig], gate) &&
                        agree(state[at], h * gate + old * (1 - gate));
                right = right && agree(dz[ih], local<squared>((1 - h * h) * gate) * ds[at]) &&
                        agree(dz[ig], local<squared>((h - old) * gate * (1 - gate)) * ds[at]) &&
                        agree(dbefore[at], start[at] + local<squared>(1 - gate) * ds[at]);
            }
        REQUIRE(right);
    }
}

TEMPLATE_TEST_CASE("Gates driven to the end of the range are 0 or 1", "[kernel][gates]", float, double) {
    using T = TestType;
    const T far = GENERATE(T(100), T(1e30), std::numeric_limits<T>::max());
    for (const Index n : {1, 16, 21}) {
        CAPTURE(far, n);
        // input open, forget open, candidate 1, output open; then all the other way round
        Memory<T> z(8 * n, 1, far), before(2 * n, 0, T(0.5)), c(2 * n, 0), tc(2 * n, 0), h(2 * n, 0);
        for (Index i = 4 * n; i < 8 * n; ++i) z[i] = -far;
        kernel::lstm_forward(Index{2}, n, z.out(), before.in(), c.out(), tc.out(), h.out());
        REQUIRE((z.written() && c.written() && tc.written() && h.written()));
        for (Index j = 0; j < n; ++j) {
            REQUIRE(double(c[j]) == Approx(1.5));
            REQUIRE(double(h[j]) == Approx(std::tanh(1.5)));
            REQUIRE(std::abs(double(c[n + j])) < 1e-30);
            REQUIRE(std::abs(double(h[n + j])) < 1e-30);
            REQUIRE(z[4 * n + 2 * n + j] == -1);
        }
    }
}
