// Prints the matrices of float in the files named: rows, columns, numbers, a file a line. See ../read_npz.py.
#include <cstdio>
#include <isogloss/tensor.hpp>
#if __has_include(<xtensor/io/xnpy.hpp>)
#include <xtensor/io/xnpy.hpp>
#else
#include <xtensor/xnpy.hpp>
#endif

int main(int count, char** files) {
    for (int k = 1; k < count; ++k) {
        const isogloss::Tensor<float, 2> table = xt::load_npy<float>(files[k]);
        std::printf("%zu %zu", table.shape()[0], table.shape()[1]);
        for (const float v : table) std::printf(" %.9g", double(v));
        std::puts("");
    }
}
