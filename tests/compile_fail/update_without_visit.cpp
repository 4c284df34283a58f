// expect: this update has only the visit\(\) of Rule, and a checkpoint would lose what it accumulates
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/update/rule.hpp>
#include <vector>
using namespace isogloss;

struct MomentumOptions {
    double rate = 0.1;
    Divisor divisor = Divisor::batch;
};
template <class T> struct Momentum : Rule<T, MomentumOptions> {
    std::vector<T> velocity;
    explicit Momentum(Parameters<T> group) : Rule<T, MomentumOptions>("momentum", group, {}) {}
};

int main() {
    Graph<double> g({});
    Momentum<double> update(g.parameters());
    io::Checkpoint().model(g).state("momentum", update);
}
