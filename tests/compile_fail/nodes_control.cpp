// compiles
// What the mistakes in wiring have in common, without the mistake.
#include <isogloss/graph/graph.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/softmax.hpp>
using namespace isogloss;

template <class T> struct Whole {
    struct Options {};
    Options options;
    Seq<T> setup(Setup<T>&, Seq<T> x) { return x; }
    void forward(Forward<T>&) {}
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

int main() {
    Graph<float> g({.time = 2, .batch = 2});
    auto x = g.tokens("x", 10);
    auto E = g.weight("E", 10, 4, uniform(0.1));
    auto h = g.add<Lstm>("lstm", {.units = 4}, g.add<Embedding>("embed", {}, x, E));
    g.add<TiedSoftmax>("softmax", {}, g.add<Whole>("whole", {}, h), E);
}
