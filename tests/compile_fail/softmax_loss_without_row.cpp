// expect: a SoftmaxLoss needs `double row\(const LogitRow<T>&\) const`
#include <isogloss/graph/graph.hpp>
#include <isogloss/loss/softmax_loss.hpp>
#include <isogloss/node/softmax.hpp>
using namespace isogloss;

template <class T> struct Half : SoftmaxLoss<T, Half> {
    struct Options {};
    Options options;
};

int main() {
    Graph<float> g({.time = 2, .batch = 2});
    const auto o = g.add<Softmax>("softmax", {.vocabulary = 3}, g.input("h", 3));
    g.add<Half>("half", {}, o, g.tokens("y", 3));
}
