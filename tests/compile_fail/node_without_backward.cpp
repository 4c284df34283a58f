// expect: a node needs `template <class Quantity> void backward\(Backward<T, Quantity>&\)`
#include <isogloss/graph/graph.hpp>
using namespace isogloss;

template <class T> struct Half {
    struct Options {};
    Options options;
    Seq<T> setup(Setup<T>&, Seq<T> x) { return x; }
    void forward(Forward<T>&) {}
};

int main() {
    Graph<float> g({.time = 2, .batch = 2});
    g.add<Half>("half", {}, g.input("x", 3));
}
