// A loss of one's own over lazy logits: cross-entropy in which each word counts as much as it is told to.
#include <cmath>
#include <cstdio>
#include <isogloss/check.hpp>
#include <isogloss/isogloss.hpp>

namespace ig = isogloss;

/// l = Σ_t w(y_t) · -log softmax(o_t)[y_t]
template <class T> struct WeightedLoss {
    struct Options {
        std::vector<double> weights;  // one for each word, ≥ 0
    };
    Options options;
    ig::FusedSoftmax<T> head;
    ig::Loss<T> l;

    ig::Loss<T> setup(ig::Setup<T>& s, ig::Logits<T> o, ig::Tokens y) {
        if (std::ssize(options.weights) != o.vocabulary)
            s.fail(ig::message("found ", options.weights.size(), " weights, expected ", o.vocabulary,
                               ", one for each word"));
        head.setup(s, o, y);
        return l = s.loss();
    }
    void forward(ig::Forward<T>& p) {
        std::fill_n(p.by_token(l), p.rows(), 0.0);
        const auto count = head.forward(p, l, [&](ig::LogitBlock<T>& block) { rows(p, block); });
        double total = 0;
        for (ig::Index r = 0; r < p.rows(); ++r) total += p.by_token(l)[r];
        p.set(l, total, count);
    }
    void backward(ig::Backward<T>& p) {  // by gradient only: no modulus is offered
        head.backward(p, l, [&](ig::LogitBlock<T>& block) { rows(p, block); });
    }
    void rows(const ig::Pass<T>& p, ig::LogitBlock<T>& block) const {
        for (ig::Index r = 0; r < block.z.rows; ++r) {
            T* z = block.z.row(r);
            const ig::Token y = block.target[r];
            const double weight = options.weights[static_cast<std::size_t>(y)],
                         scale = p.upstream(l) * weight;
            const T m = ig::kernel::row_max(block.z.cols, z);
            const double of_target = double(z[y]) - double(m);
            const double sum = ig::kernel::exp_sum(block.z.cols, z, m, T(1), z);  // z ← exp(z - m)
            p.by_token(l)[block.position[r]] = weight * (std::log(sum) - of_target);
            if (!block.gradient) continue;
            ig::kernel::scale(block.z.cols, static_cast<T>(scale / sum), z);
            z[y] -= static_cast<T>(scale);
        }
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
