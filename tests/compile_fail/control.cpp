// compiles
// What the other files of this folder have in common, without their mistake: were this one refused too,
// theirs would prove nothing.
#include <isogloss/linalg.hpp>

int main() {
    const isogloss::Tensor<float, 2> a = {{1, 2}, {3, 4}};
    isogloss::Tensor<float, 2> c = a;
    isogloss::gemm<float>(1, {a.data(), 2, 2}, {a.data(), 2, 2}, 0, {c.data(), 2, 2});
}
