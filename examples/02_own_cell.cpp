// A user-defined cell, written like its equations and checked against the laws of a node.
//
//     g_t = σ(x_t W + h_{t-1} U + b),   h_t = (1 - g_t) ∘ h_{t-1} + g_t ∘ tanh(x_t V)
#include <cstdio>
#include <isogloss/check.hpp>
#include <isogloss/isogloss.hpp>

namespace ig = isogloss;

template <class T> struct Leaky {
    struct Options {
        ig::Index units = 0;
    };
    Options options;
    ig::Units<T> z, v;  // pre-activations of the gate and the candidate
    ig::Seq<T> h, gate, candidate;

    ig::Seq<T> setup(ig::Setup<T>& s, ig::Seq<T> x) {
        h = s.recurrent("h", options.units);
        gate = s.sequence("gate", options.units);
        candidate = s.sequence("candidate", options.units);
        z = s.units("z", options.units).from("W", x).from("U", s.previous(h)).bias("b");
        v = s.units("v", options.units).from("V", x);
        return h;
    }
    void forward(ig::Forward<T>& p) {
        p.affine(z);
        p.affine(v);
        noalias(p.at(candidate)) = tanh(p.at(v));  // needs no state: all steps at once
        for (const auto t : p.steps()) {
            p.affine(z, t);
            noalias(p.at(gate, t)) = 1 / (1 + exp(-p.at(z, t)));
            noalias(p.at(h, t)) = (1 - p.at(gate, t)) * p.at(h, t - 1) + p.at(gate, t) * p.at(candidate, t);
        }
    }
    template <class Quantity> void backward(ig::Backward<T, Quantity>& p) {
        for (const auto t : p.steps_back()) {
            const auto g = p.at(gate, t), c = p.at(candidate, t), before = p.at(h, t - 1),
                       dh = p.adjoint(h, t);
            noalias(p.adjoint(z, t)) = p.chain((c - before) * g * (1 - g)) * dh;
            noalias(p.adjoint(v, t)) = p.chain(g * (1 - square(c))) * dh;
            noalias(p.adjoint(h, t - 1)) += p.chain(1 - g) * dh;
            p.affine_backward(z, t);
        }
        p.affine_backward(z);
        p.affine_backward(v);
    }
};

int main() {
    const std::string broken = ig::check::laws([](auto& g) {
        return ig::check::probe(g, g.template add<Leaky>("cell", {.units = 4}, g.input("x", 3)));
    });
    std::printf("%s", broken.empty() ? "all laws hold\n" : broken.c_str());
    return broken.empty() ? 0 : 1;
}

// all laws hold
