#include <isogloss/check.hpp>
#include <isogloss/loss/activation_penalty.hpp>
#include <limits>

#include "catch.hpp"
#include "laws.hpp"

using namespace isogloss;

namespace {

enum class Fault {
    none,
    gradient,
    accumulation,
    allocation,
    capacity,
    determinism,
    guards,
    carrying,
    precision,
    modulus,
    modulus_throws,
    modulus_adds,
    evaluation,
    freezing,
    adding,
    infinite
};

// A leaky sum with a gain, y_t = a ∘ x_t + y_{t-1} / 2, that obeys all laws but the one of its fault.
template <class T> struct Faulty {
    struct Options {
        Fault fault = Fault::none;
    };
    Options options;
    Weight<T> a;
    Seq<T> x, y;
    T* work = nullptr;
    Index columns = 0;
    T tilt = 1;
    std::vector<T> allocated;

    bool has(Fault f) const { return options.fault == f; }

    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        static int built = 0;
        x = in;
        a = s.weight("a", 1, x.width, uniform(1));
        work = s.template scratch<T>(1);
        columns = s.capacity().batch;
        if (has(Fault::determinism)) tilt += static_cast<T>(1e-14) * static_cast<T>(built++ % 2);
        if (has(Fault::precision) && sizeof(T) == 4) tilt = T(1.01);
        if (has(Fault::evaluation) && !s.gradients()) tilt = T(1.01);
        return y = s.recurrent("y", x.width);
    }
    T gain(const Pass<T>& p, Index j) const {
        const T scale = has(Fault::capacity) && p.batch() < columns ? T(0.9) : T(1);
        return scale * tilt * p.values(a).data[j];
    }
    void forward(Forward<T>& p) {
        const Index n = p.batch() * x.width;
        if (has(Fault::allocation)) allocated = std::vector<T>(static_cast<std::size_t>(n));
        if (has(Fault::guards)) work[64 / sizeof(T)] = 1;
        for (const Index t : p.steps())
            for (Index i = 0; i < n; ++i) {
                const T before = has(Fault::carrying) && t == 0 ? T(0) : p.data(y, t - 1)[i];
                p.data(y, t)[i] = gain(p, i % x.width) * p.data(x, t)[i] + before / 2;
            }
    }
    template <class Quantity> void backward(Backward<T, Quantity>& p) {
        constexpr bool is_gradient = Backward<T, Quantity>::is_gradient;
        const Index n = p.batch() * x.width;
        for (const Index t : p.steps_back())
            for (Index i = 0; i < n; ++i) {
                const T dy = p.adjoint_data(y, t)[i];
                T dx = p.chain(gain(p, i % x.width)) * dy;
                if (has(Fault::freezing) && !p.is_trained(a)) dx *= T(1.01);
                if (has(Fault::modulus) && !is_gradient) dx = -dx;
                if (has(Fault::adding)) p.adjoint_data(x, t)[i] = dx;
                else p.adjoint_data(x, t)[i] += dx;
                p.adjoint_data(y, t - 1)[i] += p.chain(T(0.5)) * dy;
            }
        if constexpr (is_gradient) {
            if (!p.is_trained(a)) return;
            T* gradient = p.gradient(a).data;
            if (has(Fault::accumulation)) std::fill_n(gradient, x.width, T(0));
            for (const Index t : p.steps())
                for (Index i = 0; i < n; ++i)
                    if (const Index j = i % x.width; !(has(Fault::gradient) && j == 2))
                        gradient[j] += tilt * p.data(x, t)[i] * p.adjoint_data(y, t)[i];
            if (has(Fault::infinite)) gradient[1] = std::numeric_limits<T>::infinity();
        } else {
            if (has(Fault::modulus_throws)) throw UsageError("node 'faulty': it has no modulus");
            if (has(Fault::modulus_adds)) p.gradient(a).data[2] += T(1);
        }
    }
};

std::vector<check::Breach> broken(Fault fault) {
    return broken_laws([=](auto& g) {
        return check::probe(g, g.template add<Faulty>("faulty", {.fault = fault}, g.input("x", 3)));
    });
}

// The cube of the positive part of x, which leaves the other entries of its output as they were.
template <class T> struct HalfWritten {
    struct Options {
        bool whole = false;
    };
    Options options;
    Seq<T> x, y;

    Seq<T> setup(Setup<T>& s, Seq<T> in) {
        x = in;
        return y = s.sequence("y", x.width);
    }
    void forward(Forward<T>& p) {
        for (Index i = 0; i < p.rows() * x.width; ++i)
            if (p.data(x)[i] > 0 || options.whole)
                p.data(y)[i] = std::pow(std::max(p.data(x)[i], T(0)), T(3));
    }
    void backward(Backward<T>& p) {
        for (Index i = 0; i < p.rows() * x.width; ++i)
            if (const T v = p.data(x)[i]; v > 0) p.adjoint_data(x)[i] += 3 * v * v * p.adjoint_data(y)[i];
    }
};

// l = 1/2 Σ (h - target)², whose target is given from outside and read as a constant.
template <class T> struct SquaredDistance {
    struct Options {
        bool forgets = false;  // the weight of the loss in a total
    };
    Options options;
    Seq<T> h, target;
    Loss<T> l;

    Loss<T> setup(Setup<T>& s, Seq<T> of, Seq<T> given) {
        h = of, target = given;
        return l = s.loss();
    }
    void forward(Forward<T>& p) {
        double total = 0;
        for (Index r = 0; r < p.rows(); ++r) {
            double row = 0;
            for (Index i = r * h.width; i < (r + 1) * h.width; ++i)
                row += 0.5 * std::pow(double(p.data(h)[i]) - double(p.data(target)[i]), 2);
            p.by_token(l)[r] = row;
            total += row;
        }
        p.set(l, total, p.rows());
    }
    void backward(Backward<T>& p) {
        const T upstream = static_cast<T>(options.forgets ? 1 : p.upstream(l));
        for (Index i = 0; i < p.rows() * h.width; ++i)
            p.adjoint_data(h)[i] += upstream * (p.data(h)[i] - p.data(target)[i]);
    }
};

}  // namespace

TEST_CASE("A node without a fault obeys all laws", "[core][check]") {
    REQUIRE(broken(Fault::none).empty());
    REQUIRE(laws([](auto& g) {
                return check::probe(g, g.template add<Faulty>("faulty", {}, g.input("x", 3)));
            }) == "");
}

TEST_CASE("Each of twelve faults is found by its law alone, which says where", "[core][check]") {
    struct Case {
        Fault fault;
        std::string law, where;
    };
    for (const auto& [fault, law, where] :
         {Case{Fault::gradient, "gradient", "training, faulty.a[0, 2]"},
          Case{Fault::accumulation, "accumulation", "faulty.a[0, "},
          Case{Fault::allocation, "allocation", "calls of operator new in a step"},
          Case{Fault::capacity, "capacity", "["}, Case{Fault::determinism, "determinism", "["},
          Case{Fault::guards, "guards", "written beyond a block"},
          Case{Fault::carrying, "carrying", "faulty.y["}, Case{Fault::precision, "precision", "["},
          Case{Fault::modulus, "modulus", "x[0, 0, 0]"}, Case{Fault::evaluation, "evaluation", "the loss"},
          Case{Fault::freezing, "freezing", "x["}, Case{Fault::adding, "adding", "training, x["}}) {
        const auto breaches = broken(fault);
        CAPTURE(law);
        REQUIRE(breaches.size() == 1);
        const auto& b = breaches.front();
        CHECK(b.law == law);
        CHECK(b.where.find(where) != std::string::npos);
        if (fault != Fault::guards) CHECK(b.found != b.expected);
        CHECK(check::to_string(b).rfind(law + ": " + b.where, 0) == 0);
    }
}

TEST_CASE("A pass of moduli that is refused, or that adds to a gradient, breaks the ninth law alone",
          "[core][check]") {
    for (const auto& [fault, what] :
         {std::pair{Fault::modulus_throws, "modulus: node 'faulty'"},
          {Fault::modulus_adds, "modulus: gradient of faulty.a[0, 2] after a pass"}}) {
        const auto breaches = broken(fault);
        REQUIRE(breaches.size() == 1);
        CAPTURE(check::to_string(breaches.front()));
        CHECK(check::to_string(breaches.front()).rfind(what, 0) == 0);
    }
}

TEST_CASE("Numbers that differ by less than a message shows are written in full", "[core][check]") {
    const auto b = broken(Fault::determinism).at(0);
    const std::string text = check::to_string(b);
    const auto against = text.rfind(" against "), before = text.rfind(' ', against - 1);
    REQUIRE(against != std::string::npos);
    CHECK(std::stod(text.substr(before)) == b.found);
    CHECK(std::stod(text.substr(against + 9)) == b.expected);
}

TEST_CASE("A wrong gradient is shown beside the right one, a number of allocations beside 0",
          "[core][check]") {
    const auto wrong = broken(Fault::gradient).at(0);
    CHECK(wrong.found == 0);
    CHECK(std::abs(wrong.expected) > 100 * wrong.allowed);
    CHECK(check::to_string(wrong) ==
          message("gradient: training, faulty.a[0, 2]: 0 against ", wrong.expected));
    const auto twice = broken(Fault::accumulation).at(0);
    CHECK(twice.expected == Approx(2 * twice.found));
    CHECK(check::to_string(broken(Fault::allocation).at(0)) ==
          "allocation: calls of operator new in a step: 1 against 0");
    CHECK(check::to_string(broken(Fault::guards).at(0)) == "guards: written beyond a block");
    CHECK(broken(Fault::precision).at(0).found / broken(Fault::precision).at(0).expected ==
          Approx(1.01).epsilon(1e-3));
    CHECK(broken(Fault::modulus).at(0).found < 0);
    CHECK(broken(Fault::evaluation).at(0).found / broken(Fault::evaluation).at(0).expected ==
          Approx(1.01).epsilon(1e-3));
    CHECK(broken(Fault::freezing).at(0).found / broken(Fault::freezing).at(0).expected ==
          Approx(1.01).epsilon(1e-3));
}

TEST_CASE("A gradient that is infinite obeys no law of gradients", "[core][check]") {
    const auto breaches = broken(Fault::infinite);
    std::string all;
    for (const auto& b : breaches) all += b.law + " ";
    REQUIRE(all == "gradient accumulation capacity precision freezing ");
    CHECK(breaches.front().where == "training, faulty.a[0, 1]");
    CHECK(std::isinf(breaches.front().found));
}

TEST_CASE("A loss that forgets its weight in a total breaks the law of adding", "[core][check]") {
    for (const bool forgets : {false, true}) {
        const auto breaches = broken_laws(
            [=](auto& g) {
                return g.template add<SquaredDistance>("distance", {.forgets = forgets}, g.input("x", 3),
                                                       g.input("target", 3));
            },
            {.hold = "target"});
        REQUIRE(breaches.size() == (forgets ? 1 : 0));
        if (forgets) CHECK(breaches.front().law == "adding");
    }
}

TEST_CASE("An output that is not written everywhere holds what a larger pass has left", "[core][check]") {
    for (const bool whole : {false, true}) {
        const auto breaches = broken_laws([=](auto& g) {
            return check::probe(g, g.template add<HalfWritten>("half", {.whole = whole}, g.input("x", 3)));
        });
        for (const auto& b : breaches) UNSCOPED_INFO(check::to_string(b));
        REQUIRE(breaches.size() == (whole ? 0 : 1));
        if (whole) continue;
        CHECK(check::to_string(breaches[0]).rfind("capacity: the loss after a larger pass: ", 0) == 0);
    }
}

TEST_CASE("A probe may be part of a sum", "[core][check]") {
    REQUIRE(laws([](auto& g) {
                const auto y = g.template add<Faulty>("faulty", {}, g.input("x", 3));
                return g.template add<TotalLoss>(
                    "total", {}, check::probe(g, y),
                    g.template add<ActivationPenalty>("penalty", {.size = 1}, y));
            }) == "");
}

TEST_CASE("Inputs are differentiated by, too, unless they are held", "[core][check]") {
    const auto model = [](auto& g) {
        auto x = g.input("x", 3), target = g.input("target", 3);
        return g.template add<SquaredDistance>("distance", {}, g.template add<Faulty>("scaled", {}, x),
                                               target);
    };
    const auto breaches = broken_laws(model);
    REQUIRE(breaches.size() == 1);
    CHECK(check::to_string(breaches[0]).rfind("gradient: training, target[", 0) == 0);
    CHECK(laws(model, {.hold = "target"}) == "");
    CHECK(broken_laws(model, {.hold = "x"}).size() == 1);
    CHECK(laws(model, {.hold = "x, target, scaled.a"}) == "");
}
