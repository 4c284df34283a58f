// A user-defined loss over lazy logits: cross-entropy with a weight for each word.
#include <cstdio>
#include <isogloss/check.hpp>
#include <isogloss/isogloss.hpp>

namespace ig = isogloss;

/// l = Σ_t w(y_t) · -log softmax(o_t)[y_t]
template <class T> struct WeightedLoss : ig::SoftmaxLoss<T, WeightedLoss> {
    struct Options {
        std::vector<double> weights;  // one for each word, ≥ 0
    };
    Options options;

    ig::Loss<T> setup(ig::Setup<T>& s, ig::Logits<T> o, ig::Tokens y) {
        if (std::ssize(options.weights) != o.vocabulary)
            s.fail(ig::message("found ", options.weights.size(), " weights, expected ", o.vocabulary));
        return ig::SoftmaxLoss<T, WeightedLoss>::setup(s, o, y);
    }
    double row(const ig::LogitRow<T>& r) const {
        const double w = options.weights[std::size_t(r.target)];
        return w * ig::kernel::cross_entropy(r.vocabulary, r.z, r.target, w * r.upstream, r.gradient);
    }
};

int main() {
    const std::string broken = ig::check::laws([](auto& g) {
        auto o = g.template add<ig::Softmax>("softmax", {.vocabulary = 5}, g.input("h", 3));
        return g.template add<WeightedLoss>("loss", {.weights = {1, 0.5, 2, 0, 1}}, o, g.tokens("y", 5));
    });
    std::printf("%s", broken.empty() ? "all laws hold\n" : broken.c_str());
    return broken.empty() ? 0 : 1;
}

// all laws hold
