// expect: no type named .?Options
#include <isogloss/graph/graph.hpp>
using namespace isogloss;

template <class T> struct Bare {
    Seq<T> setup(Setup<T>&, Seq<T> x) { return x; }
    void forward(Forward<T>&) {}
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

int main() {
    Graph<float> g({.time = 2, .batch = 2});
    g.add<Bare>("bare", {}, g.input("x", 3));
}
