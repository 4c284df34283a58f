#!/usr/bin/env bash
# The core, texts, files, metrics, the closed form and HMMs compile where there is no POSIX: without_posix.sh SOURCE WORK, by
# Debian's cross compiler for Windows. tests/windows.sh runs tests there.
set -euo pipefail
mkdir -p "$2/include"
for library in xtensor xtensor-blas xflens xtl xsimd nlohmann; do ln -sfn "/usr/include/$library" "$2/include/$library"; done
cat > "$2/main.cpp" <<'END'
#include <cstdio>
#include <isogloss/check.hpp>
#include <isogloss/closed_form/concatenated_softmax.hpp>
#include <isogloss/evaluation.hpp>
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/io.hpp>
#include <isogloss/loss/augmented.hpp>
#include <isogloss/geometry/subspace_distance.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/text.hpp>
#include <isogloss/update/riemannian/riemannian.hpp>
#include <isogloss/update/sgd.hpp>
#include <vector>
namespace ig = isogloss;

int main() {
    ig::Graph<float> g({.time = 5, .batch = 2});
    auto x = g.tokens("x", 6), y = g.tokens("y", 6);
    auto E = g.weight("E", 6, 4, ig::uniform(0.5));
    auto h = g.add<ig::Lstm>("lstm", {.units = 4}, g.add<ig::Embedding>("embed", {}, x, E));
    auto l = g.add<ig::AugmentedLoss>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {}, h, E), y);
    ig::Sgd<float> sgd(g.parameters("E"), {.rate = 0.5});
    ig::Riemannian<float> natural(g, "lstm.*", {});
    const std::vector<ig::Token> in(10, 1), out(10, 2);
    std::printf("%g\n", g.forward(l, {x, {in.data(), 5, 2}}, {y, {out.data(), 5, 2}}));
    g.backward(l);
    sgd.step(), natural.step();
}
END
x86_64-w64-mingw32-g++-posix -std=c++20 -O1 -fopenmp -DHAVE_CBLAS=1 -I"$1/include" -isystem "$2/include" -c "$2/main.cpp" -o "$2/main.o"
