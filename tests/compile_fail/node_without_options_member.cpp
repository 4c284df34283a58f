// expect: a node needs a nested type Options and a member `options` of that type
#include <isogloss/graph/graph.hpp>
using namespace isogloss;

template <class T> struct Bare {
    struct Options {};
    Seq<T> setup(Setup<T>&, Seq<T> x) { return x; }
    void forward(Forward<T>&) {}
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

int main() {
    Graph<float> g({.time = 2, .batch = 2});
    g.add<Bare>("bare", {}, g.input("x", 3));
}
