// expect: the node's setup\(\) returns void
#include <isogloss/graph/graph.hpp>
using namespace isogloss;

template <class T> struct Mute {
    struct Options {};
    Options options;
    void setup(Setup<T>&, Seq<T>) {}
    void forward(Forward<T>&) {}
    template <class Quantity> void backward(Backward<T, Quantity>&) {}
};

int main() {
    Graph<float> g({.time = 2, .batch = 2});
    g.add<Mute>("mute", {}, g.input("x", 3));
}
