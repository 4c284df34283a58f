#include <isogloss/isogloss.hpp>
#include <sstream>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

namespace {

template <class T> struct Silent {  // a node of its own namespace, with nothing in it
    struct Options {};
    Options options;
    Seq<T> setup(Setup<T>&, Seq<T> x) { return x; }
    void forward(Forward<T>&) {}
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

template <class T> void build(Graph<T>& g) {
    const auto x = g.tokens("x", 10), y = g.tokens("y", 10);
    const auto E = g.weight("E", 10, 8, uniform(0.1));
    auto h = g.template add<Embedding>("embed", {}, x, E);
    h = g.template add<Lstm>("lstm", {.units = 8}, h);
    h = g.template add<Sum>("sum", {}, h, g.input("u", 8));
    g.template add<CrossEntropy>("loss", {}, g.template add<TiedSoftmax>("softmax", {.bias = true}, h, E), y);
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
}

// Without the bytes, which depend on the layout of the arena.
std::vector<std::string> without_bytes(const std::string& text) {
    auto all = lines(text);
    for (auto& line : all)
        if (const auto at = line.rfind(line.starts_with("graph") ? ", " : "; "); line.ends_with(" bytes"))
            line.resize(at);
    return all;
}

}  // namespace

TEMPLATE_TEST_CASE("A graph is described by inputs, weights and nodes with their shapes", "[graph][describe]",
                   float, double) {
    Graph<TestType> g({.time = 5, .batch = 2});
    build(g);
    const std::vector<std::string> expected = {
        "graph: T = 5, B = 2, 634 parameters",
        "tokens x: below 10",
        "tokens y: below 10",
        "input u: width 8",
        "weight E: [10, 8], 80 parameters",
        "weight lstm.W: [8, 32], 256 parameters",
        "weight lstm.U: [8, 32], 256 parameters",
        "weight lstm.b: [1, 32], 32 parameters",
        "weight softmax.b: [1, 10], 10 parameters",
        "node embed: Embedding of x, E; y 8",
        "node lstm: Lstm of embed; h 8 carried, c 8 carried, tanh_c 8, z 32",
        "node sum: Sum of u, lstm; y 8",
        "node softmax: TiedSoftmax of sum, E; logits 10",
        "node loss: CrossEntropy of y, softmax; loss"};
    CHECK(without_bytes(describe(g)) == expected);
}

TEST_CASE("A graph for evaluation, one on shared weights and an empty one say so", "[graph][describe]") {
    Graph<float> g({.time = 5, .batch = 2, .gradients = false});
    build(g);
    CHECK(lines(describe(g)).at(0) ==
          message("graph: T = 5, B = 2, 634 parameters, ", g.memory(), " bytes, for evaluation alone"));
    Graph<float> shares({.time = 5, .batch = 2}, g.shared_weights());
    build(shares);
    CHECK(lines(describe(shares)).at(0) == message("graph: T = 5, B = 2, 634 parameters of another graph, ",
                                                   shares.memory(), " bytes, for evaluation alone"));
    CHECK(describe(Graph<double>({})) == "graph: T = 1, B = 1, 0 parameters, 0 bytes\n");
    Graph<double> own({});
    own.add<Silent>("quiet", {}, own.input("u", 1));
    CHECK(lines(describe(own)).back() == "node quiet: Silent of u; 0 bytes");
}
