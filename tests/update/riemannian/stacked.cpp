// A network on a graph between two LSTMs: each layer is trained by its own metric, in one update or in several.
#include <isogloss/update/riemannian/riemannian.hpp>
#include <map>

#include "networks.hpp"

namespace {

constexpr Index T = 12, B = 4, A = 5;

// An LSTM on symbols, a Glnn on its hidden sequence, an LSTM on the activities.
struct Stack {
    Graph<double> g{GraphOptions{.time = T, .batch = B}};
    Tokens x, y;
    Loss<double> l;
    std::vector<Token> text, next;

    Stack() : x(g.tokens("x", A)), y(g.tokens("y", A)) {
        const auto e = g.add<Embedding>("embed", {}, x, g.weight("E", A, 6, uniform(0.5)));
        const auto under = g.add<Lstm>("under", {.units = 6}, e);
        const auto a = g.add<Glnn>("net", {.units = 7, .edges = 3, .bound = 4}, under);
        const auto over = g.add<Lstm>("over", {.units = 5}, a);
        l = g.add<CrossEntropy>("loss", {}, g.add<Softmax>("out", {.vocabulary = A}, over), y);
        for (Index t = 0; t < T; ++t)  // 0 1 2 3 4 0 …, a column one symbol behind the next
            for (Index b = 0; b < B; ++b) {
                text.push_back(static_cast<Token>((t + b) % A));
                next.push_back(static_cast<Token>((t + b + 1) % A));
            }
    }
    double pass(bool modulus) {
        g.reset();
        const double loss = g.forward(l, {x, {text.data(), T, B}}, {y, {next.data(), T, B}});
        g.parameters().clear_gradients();
        g.backward(l);
        if (modulus) g.backward<Modulus>(l);
        return loss;
    }
};

// What an update shows of its metrics: each array of sums by name.
struct Sums {
    std::map<std::string, Numbers> arrays;
    template <class V> void number(const std::string&, V&) {}
    template <class V> void counter(const std::string&, V&) {}
    void array(const std::string& name, const double* v, Index rows, Index columns) {
        arrays[name].assign(v, v + rows * columns);
    }
};

}  // namespace

TEST_CASE("An LSTM under a network on a graph and one over it train by the metric of each",
          "[riemannian][update]") {
    const UnitModulus modulus = GENERATE(UnitModulus::ruop, UnitModulus::rbpm);
    // Refreshed at every step: the network, which begins a sequence in every pass, would make one update refresh all metrics.
    const RiemannianOptions options{.modulus = modulus, .rate = 0.02, .floor = 1e-4, .every = 1};
    const std::vector<std::string> patterns = {"under.*", "net.*", "over.*", "out.*"};
    Stack apart, together;
    std::vector<Riemannian<double>> layers;
    for (const auto& pattern : patterns) layers.emplace_back(apart.g, pattern, options);
    Riemannian<double> all(together.g, "!E", options);
    const double first = apart.pass(all.wants_modulus());
    REQUIRE(together.pass(all.wants_modulus()) == first);

    // Metrics that are there, and steps that are no multiple of the gradient.
    all.step();
    for (std::size_t k = 0; k < layers.size(); ++k) {
        std::vector<Numbers> gradients;
        for (const auto* p : apart.g.parameters(patterns[k])) gradients.push_back(gradient(apart.g, p->name));
        layers[k].step();
        Sums found;
        layers[k].visit(found);
        CAPTURE(patterns[k]);
        REQUIRE(!found.arrays.empty());
        for (const auto& [name, values] : found.arrays) {
            CAPTURE(name);
            REQUIRE(std::any_of(values.begin(), values.end(), [](double v) { return v != 0; }));
        }
        double least = 1e300, most = 0;
        for (std::size_t i = 0; i < gradients.size(); ++i)
            for (std::size_t j = 0; j < gradients[i].size(); ++j)
                if (const double G = std::abs(gradients[i][j]); G > 1e-6) {
                    const double ratio = std::abs(layers[k].direction(i)[j]) / G;
                    least = std::min(least, ratio), most = std::max(most, ratio);
                }
        REQUIRE(most > 1.001 * least);  // under the others the floor is most of the metric yet
    }

    // One update of all layers does what four do.
    double last = first;
    for (int k = 0; k < 150; ++k) {
        const bool wants = all.wants_modulus();
        last = apart.pass(wants);
        REQUIRE(together.pass(wants) == last);
        for (auto& layer : layers) layer.step();
        all.step();
    }
    REQUIRE(last < 0.5 * first);
}
