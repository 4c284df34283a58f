// What a program outside the project does with the library, in a few lines.
#include <iostream>
#include <isogloss/linalg.hpp>
#include <isogloss/random.hpp>

int main() {
    namespace ig = isogloss;
    ig::Tensor<float, 2> a = {{1, 2}, {3, 4}}, b = {{5, 6}, {7, 8}}, c = {{0, 0}, {0, 0}};
    ig::gemm<float>(1, {a.data(), 2, 2}, {b.data(), 2, 2}, 0, {c.data(), 2, 2});
    const double u = ig::Random(1, ig::stream_of("consumer")).uniform(0);
    std::cout << "product " << c(0, 0) << ' ' << c(1, 1) << ", a random number " << u << '\n';
    return c(0, 0) == 19 && c(1, 1) == 50 && u > 0 && u < 1 ? 0 : 1;
}
