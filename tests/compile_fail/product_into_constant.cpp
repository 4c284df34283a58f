// expect: invalid conversion from .*const float|no matching function for call to 'gemm'
#include <isogloss/linalg.hpp>

int main() {
    const isogloss::Tensor<float, 2> a = {{1, 2}, {3, 4}}, c = a;
    isogloss::gemm<float>(1, {a.data(), 2, 2}, {a.data(), 2, 2}, 0, {c.data(), 2, 2});
}
