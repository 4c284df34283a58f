#include <cmath>
#include <isogloss/kernel/gates.hpp>
#include <limits>

#include "catch.hpp"
#include "memory.hpp"

using namespace isogloss;

namespace {

template <class T> constexpr double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-14;

// Whether two numbers agree, for values of order 1.
template <class T> bool agree(T got, double expected) {
    return std::abs(double(got) - expected) <= tolerance<T> * (1 + std::abs(expected));
}

template <class T> bool agree(const Memory<T>& got, const Memory<T>& expected) {
    for (Index i = 0; i < expected.size(); ++i)
        if (!agree(got[i], double(expected[i]))) return false;
    return true;
}

constexpr Index rows = 3;

// The arrays of a step. forward() and rows() hand them out for writing and for reading.
template <class T> struct LstmStep {
    Index n, all = rows * n;
    Memory<T> z = Memory<T>::random(4 * all, 1, 1), before = Memory<T>::random(all, 2, 2), c{all, 1},
              tanh_c{all, 2}, h{all, 3}, dh = Memory<T>::random(all, 3, 3), dc = Memory<T>::random(all, 1, 4),
              dz{4 * all, 1};

    kernel::LstmRows<T> forward() { return {z.out(), before.in(), c.out(), tanh_c.out(), h.out()}; }
    kernel::LstmRows<T> read() {
        return {z.in_record(), before.in(), c.in_record(), tanh_c.in_record(), h.in_record()};
    }
    kernel::LstmAdjoints<T> backward() { return {dh.in(), dc.out(), dz.out()}; }
    bool forward_written() { return z.written() && c.written() && tanh_c.written() && h.written(); }
    bool backward_written() { return dc.written() && dz.written(); }
    bool agrees(const LstmStep& s) const {
        return agree(z, s.z) && agree(c, s.c) && agree(tanh_c, s.tanh_c) && agree(h, s.h) &&
               agree(dc, s.dc) && agree(dz, s.dz);
    }
    bool same_activations(const LstmStep& s) const {
        return z == s.z && before == s.before && c == s.c && tanh_c == s.tanh_c && h == s.h;
    }
};
template <class T> struct GruStep {
    Index n, all = rows * n;
    Memory<T> gates = Memory<T>::random(2 * all, 1, 1), q = Memory<T>::random(all, 1, 2),
              before = Memory<T>::random(all, 2, 3), reset{all, 2}, h{all, 3},
              dh = Memory<T>::random(all, 3, 4), dreset = Memory<T>::random(all, 3, 5), dgates{2 * all, 1},
              dq{all, 1}, dbefore = Memory<T>::random(all, 1, 6);

    kernel::GruRows<T> forward() { return {gates.out(), before.in(), reset.out(), q.out(), h.out()}; }
    kernel::GruRows<T> read() {
        return {gates.in_record(), before.in(), reset.in_record(), q.in_record(), h.in_record()};
    }
    kernel::GruAdjoints<T> backward() {
        return {dh.in(), dreset.in(), dgates.out(), dq.out(), dbefore.out()};
    }
    bool forward_written() { return gates.written() && reset.written() && q.written() && h.written(); }
    bool backward_written() { return dgates.written() && dq.written() && dbefore.written(); }
    bool agrees(const GruStep& s) const {
        return agree(gates, s.gates) && agree(reset, s.reset) && agree(q, s.q) && agree(h, s.h) &&
               agree(dgates, s.dgates) && agree(dq, s.dq) && agree(dbefore, s.dbefore);
    }
    bool same_activations(const GruStep& s) const {
        return gates == s.gates && before == s.before && reset == s.reset && q == s.q && h == s.h;
    }
};
template <class T> struct HighwayStep {
    Index n, all = rows * n;
    Memory<T> z = Memory<T>::random(2 * all, 1, 1), before = Memory<T>::random(all, 2, 2), s{all, 2},
              ds = Memory<T>::random(all, 3, 3), dz{2 * all, 3}, dbefore = Memory<T>::random(all, 1, 4);

    kernel::HighwayRows<T> forward() { return {z.out(), before.in(), s.out()}; }
    kernel::HighwayRows<T> read() { return {z.in_record(), before.in(), s.in_record()}; }
    kernel::HighwayAdjoints<T> backward() { return {ds.in(), dz.out(), dbefore.out()}; }
    bool forward_written() { return z.written() && s.written(); }
    bool backward_written() { return dz.written() && dbefore.written(); }
    bool agrees(const HighwayStep& o) const {
        return agree(z, o.z) && agree(s, o.s) && agree(dz, o.dz) && agree(dbefore, o.dbefore);
    }
    bool same_activations(const HighwayStep& o) const { return z == o.z && before == o.before && s == o.s; }
};

template <class T> struct QrnnStep {
    Index n, all = rows * n;
    Memory<T> z = Memory<T>::random(3 * all, 1, 1), before = Memory<T>::random(all, 2, 2), c{all, 1},
              h{all, 3}, dh = Memory<T>::random(all, 3, 3), dc = Memory<T>::random(all, 1, 4), dz{3 * all, 1};

    kernel::QrnnRows<T> forward() { return {z.out(), before.in(), c.out(), h.out()}; }
    kernel::QrnnRows<T> read() { return {z.in_record(), before.in(), c.in_record(), h.in_record()}; }
    kernel::QrnnAdjoints<T> backward() { return {dh.in(), dc.out(), dz.out()}; }
    bool forward_written() { return z.written() && c.written() && h.written(); }
    bool backward_written() { return dc.written() && dz.written(); }
    bool agrees(const QrnnStep& s) const {
        return agree(z, s.z) && agree(c, s.c) && agree(h, s.h) && agree(dc, s.dc) && agree(dz, s.dz);
    }
    bool same_activations(const QrnnStep& s) const {
        return z == s.z && before == s.before && c == s.c && h == s.h;
    }
};

template <class T> struct MogrifyStep {
    Index n, all = rows * n;
    Memory<T> g = Memory<T>::random(all, 1, 1), before = Memory<T>::random(all, 2, 2), y{all, 2},
              dy = Memory<T>::random(all, 3, 3), dg{all, 3}, dbefore = Memory<T>::random(all, 1, 4);

    kernel::MogrifyRows<T> forward() { return {g.out(), before.in(), y.out()}; }
    kernel::MogrifyRows<T> read() { return {g.in_record(), before.in(), y.in_record()}; }
    kernel::MogrifyAdjoints<T> backward() { return {dy.in(), dg.out(), dbefore.out()}; }
    bool forward_written() { return g.written() && y.written(); }
    bool backward_written() { return dg.written() && dbefore.written(); }
    bool agrees(const MogrifyStep& o) const {
        return agree(g, o.g) && agree(y, o.y) && agree(dg, o.dg) && agree(dbefore, o.dbefore);
    }
    bool same_activations(const MogrifyStep& o) const { return g == o.g && before == o.before && y == o.y; }
};

// Runs a step through the kernels and through the plain loops, which are given row by row.
template <class Step, class Forward, class Backward, class PlainForward, class PlainBackward>
void compare(Forward forward, Backward backward, PlainForward plain_forward, PlainBackward plain_backward) {
    for (Index n = 1; n <= 70; ++n) {
        CAPTURE(n);
        Step fast{n}, slow{n};
        forward(n, fast.forward());
        REQUIRE(fast.forward_written());
        const Step before = fast;
        backward(n, fast.read(), fast.backward());
        REQUIRE(fast.backward_written());
        REQUIRE(fast.same_activations(before));  // the backward kernels only read them
        const auto sums = slow.forward();
        for (Index r = 0; r < rows; ++r) plain_forward(n, sums.row(r, n));
        REQUIRE(slow.forward_written());
        const auto activations = slow.read();
        const auto adjoints = slow.backward();
        for (Index r = 0; r < rows; ++r) plain_backward(n, activations.row(r, n), adjoints.row(r, n));
        REQUIRE(slow.backward_written());
        REQUIRE(fast.agrees(slow));
    }
}

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
    using Rows = kernel::LstmRows<T>;
    using Adjoints = kernel::LstmAdjoints<T>;
    compare<LstmStep<T>>([](Index n, Rows a) { kernel::lstm_forward(rows, n, a); },
                         [](Index n, Rows a, Adjoints d) { kernel::lstm_backward<squared>(rows, n, a, d); },
                         [](Index n, Rows a) { kernel::plain::lstm_forward(n, a); },
                         [](Index n, Rows a, Adjoints d) { kernel::plain::lstm_backward<squared>(n, a, d); });
}

TEMPLATE_TEST_CASE_SIG("The GRU kernels", "[kernel][gates]", ((class T, bool squared), T, squared),
                       (float, false), (float, true), (double, false), (double, true)) {
    using Rows = kernel::GruRows<T>;
    using Adjoints = kernel::GruAdjoints<T>;
    compare<GruStep<T>>(
        [](Index n, Rows a) {
            kernel::gru_gates_forward(rows, n, a);
            kernel::gru_state_forward(rows, n, a);
        },
        [](Index n, Rows a, Adjoints d) {
            kernel::gru_state_backward<squared>(rows, n, a, d);
            kernel::gru_gates_backward<squared>(rows, n, a, d);
        },
        [](Index n, Rows a) { kernel::plain::gru_forward(n, a); },
        [](Index n, Rows a, Adjoints d) { kernel::plain::gru_backward<squared>(n, a, d); });
}

TEMPLATE_TEST_CASE_SIG("The highway kernels", "[kernel][gates]", ((class T, bool squared), T, squared),
                       (float, false), (float, true), (double, false), (double, true)) {
    using Rows = kernel::HighwayRows<T>;
    using Adjoints = kernel::HighwayAdjoints<T>;
    compare<HighwayStep<T>>(
        [](Index n, Rows a) { kernel::highway_forward(rows, n, a); },
        [](Index n, Rows a, Adjoints d) { kernel::highway_backward<squared>(rows, n, a, d); },
        [](Index n, Rows a) { kernel::plain::highway_forward(n, a); },
        [](Index n, Rows a, Adjoints d) { kernel::plain::highway_backward<squared>(n, a, d); });
}

TEMPLATE_TEST_CASE_SIG("The quasi-recurrent kernels", "[kernel][gates]",
                       ((class T, bool squared), T, squared), (float, false), (float, true), (double, false),
                       (double, true)) {
    using Rows = kernel::QrnnRows<T>;
    using Adjoints = kernel::QrnnAdjoints<T>;
    compare<QrnnStep<T>>([](Index n, Rows a) { kernel::qrnn_forward(rows, n, a); },
                         [](Index n, Rows a, Adjoints d) { kernel::qrnn_backward<squared>(rows, n, a, d); },
                         [](Index n, Rows a) { kernel::plain::qrnn_forward(n, a); },
                         [](Index n, Rows a, Adjoints d) { kernel::plain::qrnn_backward<squared>(n, a, d); });
}

TEMPLATE_TEST_CASE_SIG("The kernels of a mogrifier", "[kernel][gates]", ((class T, bool squared), T, squared),
                       (float, false), (float, true), (double, false), (double, true)) {
    using Rows = kernel::MogrifyRows<T>;
    using Adjoints = kernel::MogrifyAdjoints<T>;
    compare<MogrifyStep<T>>(
        [](Index n, Rows a) { kernel::mogrify_forward(rows, n, a); },
        [](Index n, Rows a, Adjoints d) { kernel::mogrify_backward<squared>(rows, n, a, d); },
        [](Index n, Rows a) { kernel::plain::mogrify_forward(n, a); },
        [](Index n, Rows a, Adjoints d) { kernel::plain::mogrify_backward<squared>(n, a, d); });
}

TEMPLATE_TEST_CASE("Gates driven to the end of the range are 0 or 1", "[kernel][gates]", float, double) {
    using T = TestType;
    const T far = GENERATE(T(100), T(1e30), std::numeric_limits<T>::max());
    for (const Index n : {1, 16, 21}) {
        CAPTURE(far, n);
        // input open, forget open, candidate 1, output open; then all the other way round
        Memory<T> z(8 * n, 1, far), before(2 * n, 0, T(0.5)), c(2 * n, 0), tc(2 * n, 0), h(2 * n, 0);
        for (Index i = 4 * n; i < 8 * n; ++i) z[i] = -far;
        kernel::lstm_forward(Index{2}, n,
                             kernel::LstmRows<T>{z.out(), before.in(), c.out(), tc.out(), h.out()});
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
