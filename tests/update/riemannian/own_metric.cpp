// A user's own metric among those of the library, and what cannot have one.
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/riemannian/search_step.hpp>

#include "networks.hpp"

namespace {

// 4 on the diagonal for each pass, of one parameter.
template <class T> class Four final : public Metric<T> {
public:
    Four(Graph<T>& g, const Parameters<T>& group, const std::string& name)
        : Metric<T>(g, "four"), size_(g.parameter(name).size()), at_(this->serve(group, g.weight(name))) {
        this->take_sums("four", sums_, 1, 1);
    }
    void add(double weight) override { sums_[0] += static_cast<T>(4 * weight); }
    void direction(std::span<const typename Metric<T>::Slot> group, double scale,
                   const Damping& damping) override {
        const auto& [G, delta] = group[std::size_t(at_)];
        for (Index i = 0; i < size_; ++i)
            delta[i] = -static_cast<T>(scale) * G[i] / (sums_[0] + damping.epsilon(sums_[0], 1));
    }

private:
    Index size_;
    int at_;
    std::vector<T> sums_;
};

template <class T> MetricMaker<T> four(Graph<T>& g, const std::string& name) {
    return [&g, name](const Parameters<T>& group) { return std::make_unique<Four<T>>(g, group, name); };
}

}  // namespace

TEMPLATE_TEST_CASE("A metric of one's own serves its parameters, the library's the others",
                   "[riemannian][update]", float, double) {
    Net<Glnn, TestType> n(40), plain(40);
    for (auto* net : {&n, &plain}) net->g.parameters("net.start").trained(false);
    const RiemannianOptions options{.rate = 0.1, .damping = 0.5, .divisor = Divisor::none};
    Riemannian<TestType> own(n.g, "net.*,out.*", options, four(n.g, "net.tau")),
        given(plain.g, "net.*,out.*", options);
    const Numbers tau = flat(n.g.value(n.g.weight("net.tau")));
    n.forward(), plain.forward();
    n.g.backward(n.l), plain.g.backward(plain.l);
    const Numbers G = gradient(n.g, "net.tau");
    own.step(), given.step();
    const Numbers moved = flat(n.g.value(n.g.weight("net.tau")));
    for (std::size_t i = 0; i < G.size(); ++i)
        REQUIRE(std::abs(moved[i] - tau[i] + 0.1 * G[i] / (4 * 1.5 + 1e-5)) < 1e-6 * (1 + std::abs(G[i])));
    for (const char* name : {"out.W", "out.b"})
        REQUIRE(flat(n.g.value(n.g.weight(name))) == flat(plain.g.value(plain.g.weight(name))));
}

TEST_CASE("A line search takes a metric of one's own", "[riemannian]") {
    Net<Glnn> n(40);
    SearchStep<double> step(n.g, "net.*", {.damping = 0, .floor = 0}, four(n.g, "net.start"));
    n.backward(step);
    step.solve();
    n.forward();
    n.g.backward(n.l);
    const Numbers G = gradient(n.g, "net.start");
    for (std::size_t i = 0; i < G.size(); ++i) {
        std::size_t k = 0;
        for (const auto* p : n.g.parameters("net.*"))
            if (p->name == "net.start") break;
            else ++k;
        REQUIRE(step.direction(k)[i] == Approx(-G[i] / 4));
    }
}

TEST_CASE("A metric of one's own serves the weights of a layer together", "[riemannian][errors]") {
    Graph<double> g({.time = 2, .batch = 1});
    g.add<Linear>("map", {.units = 3}, g.input("u", 2));
    REQUIRE_THROWS_MATCHES(Riemannian<double>(g, "map.*", {}, four(g, "map.W")), UsageError,
                           says("'map.W'", "other weights of its layer"));
    REQUIRE_NOTHROW(Riemannian<double>(g, "map.W", {}, four(g, "map.W")));
}

TEST_CASE("RUOP refuses sampled gradients, except of heads alone", "[riemannian][errors]") {
    Graph<double> g({.time = 2, .batch = 1, .epsilon = 0.01});
    const auto E = g.weight("E", 4, 3, normal(1));
    const auto h = g.add<Rnn>("rnn", {.units = 3}, g.add<Embedding>("embed", {}, g.tokens("x", 4), E));
    g.add<Softmax>("out", {.vocabulary = 4}, h);
    for (const char* group : {"rnn.*", "E"}) {
        REQUIRE_THROWS_MATCHES(Riemannian<double>(g, group, {}), UsageError, says("RUOP", "sample"));
        REQUIRE_NOTHROW(Riemannian<double>(g, group, {.modulus = UnitModulus::rbpm}));
    }
    REQUIRE_NOTHROW(Riemannian<double>(g, "out.*", {}));
}
