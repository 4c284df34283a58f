// Kernels by themselves, so that what else the library has does not change their code; then those of models.cpp.
#include <isogloss/kernel/gates.hpp>
#include <isogloss/kernel/gemm.hpp>
#include <isogloss/kernel/int8_gemm.hpp>
#include <isogloss/kernel/packed.hpp>
#include <isogloss/kernel/skinny_gemm.hpp>
#include <isogloss/kernel/softmax.hpp>
#include <isogloss/kernel/sparse_rows.hpp>
#include <isogloss/kernel/transpose.hpp>
#include <vector>

#include "count.hpp"

namespace ig = isogloss;
namespace kernel = ig::kernel;
using ig::Index, ig::MatrixRef, ig::Token;

namespace {

// What a kernel returns is used.
volatile double result;

// 64-byte aligned, so that the counts do not depend on where memory lies.
struct Numbers {
    struct alignas(64) Line {
        float numbers[16];
    };
    std::vector<Line> lines;
    float* data;
    explicit Numbers(Index n, std::uint32_t stream = 1)
        : lines(static_cast<std::size_t>(n / 16 + 1)), data(lines.front().numbers) {
        const ig::Random random(1, stream);
        for (Index i = 0; i < n; ++i) data[i] = static_cast<float>(random.uniform(i) - 0.5);
    }
    operator float*() { return data; }
    MatrixRef<float> matrix(Index rows, Index cols) { return {data, rows, cols}; }
};

constexpr Index n = 1003;  // with a tail behind the lane groups

void softmax() {
    Numbers z(n), soft(n), weight(n);
    count("softmax", [&] { result = kernel::softmax(n, z.data); });
    count("log_softmax", [&] { result = kernel::log_softmax(n, z.data, 2.f); });
    count("cross_entropy", [&] { result = kernel::cross_entropy(n, z.data, 5); });
    count("two_temperatures",
          [&] { result = kernel::exp_two_temperatures(n, z.data, 1.f, 0.5f, weight.data, soft.data).sum; });
}

void rows() {
    Numbers x(n), y(n);
    count("tanh", [&] { kernel::tanh_forward(n, x.data, y.data); });
    count("dot", [&] { result = kernel::dot(n, x.data, y.data); });
    count("sum_of_squares", [&] { result = kernel::sum_of_squares(n, x.data); });
    count("first_non_finite", [&] { result = double(kernel::first_non_finite(n, x.data)); });
    count("column_sums", [&] { kernel::add_column_sums(17, 59, x.data, y.data); });
    count("dropout_mask", [&] { kernel::draw_mask(ig::Random(1, 2), 3, n, 0.7, y.data); });
}

void gates() {
    constexpr Index rows = 3, units = 101, size = rows * units;
    Numbers z(4 * size), before(size), c(size), tanh_c(size), h(size), q(size), d(size), dc(size),
        dz(4 * size);
    const kernel::LstmRows<float> lstm{z, before, c, tanh_c, h};
    count("lstm_forward", [&] { kernel::lstm_forward(rows, units, lstm); });
    count("lstm_backward", [&] {
        kernel::lstm_backward<false>(rows, units, lstm, kernel::LstmAdjoints<float>{d, dc, dz});
    });
    const kernel::GruRows<float> gru{z, before, c, q, h};
    count("gru_forward", [&] {
        kernel::gru_gates_forward(rows, units, gru);
        kernel::gru_state_forward(rows, units, gru);
    });
    count("gru_backward", [&] {
        const kernel::GruAdjoints<float> adjoints{d, dc, dz, tanh_c, h};
        kernel::gru_state_backward<false>(rows, units, gru, adjoints);
        kernel::gru_gates_backward<false>(rows, units, gru, adjoints);
    });
    const kernel::HighwayRows<float> highway{z, before, h};
    count("highway_forward", [&] { kernel::highway_forward(rows, units, highway); });
    count("highway_backward", [&] {
        kernel::highway_backward<false>(rows, units, highway, kernel::HighwayAdjoints<float>{d, dz, dc});
    });
    const kernel::QrnnRows<float> qrnn{z, before, c, h};
    count("qrnn_forward", [&] { kernel::qrnn_forward(rows, units, qrnn); });
    count("qrnn_backward", [&] {
        kernel::qrnn_backward<false>(rows, units, qrnn, kernel::QrnnAdjoints<float>{d, dc, dz});
    });
    const kernel::MogrifyRows<float> mogrify{z, before, h};
    count("mogrify_forward", [&] { kernel::mogrify_forward(rows, units, mogrify); });
    count("mogrify_backward", [&] {
        kernel::mogrify_backward<false>(rows, units, mogrify, kernel::MogrifyAdjoints<float>{d, dz, dc});
    });
}

void products() {
    constexpr Index most = 64 * 1024;
    Numbers left(most), right(most, 2), to(most), packed(2 * most);
    const auto gemm = [&](const char* name, Index m, Index k, Index width) {
        count(name, [&] {
            kernel::Gemm<float>::product(1, left.matrix(m, k), right.matrix(k, width), 0,
                                         to.matrix(m, width));
        });
    };
    gemm("gemm_square", 70, 70, 70);
    gemm("gemm_tall", 500, 20, 30);
    gemm("gemm_skinny", 5, 200, 300);
    gemm("gemm_row", 1, 200, 300);
    const MatrixRef<float> a = left.matrix(13, 200), b = right.matrix(200, 300), c = to.matrix(13, 300);
    using Packed = kernel::Packed<float>;
    count("packed_pack", [&] { Packed::pack(b, packed); });
    count("packed_product", [&] { Packed::add_product(a, packed, c); });
    using Skinny = kernel::SkinnyGemm<float>;
    count("skinny_product", [&] { Skinny::product(a, b, 0, c); });
    count("skinny_transposed", [&] {
        Skinny::pack_left(a, packed);
        Skinny::product_transposed(packed, right.matrix(300, 200), 0, c);
    });
    count("transpose", [&] { kernel::transpose_add(203, 101, left.data, 101, 1.f, to.data, 203); });

    std::vector<std::uint8_t> integers(static_cast<std::size_t>(kernel::Int8Gemm::size(200, 300)));
    Numbers scale(kernel::Int8Gemm::padded(300)), memory(kernel::Int8Gemm::workspace(13, 200));
    count("int8_pack", [&] { kernel::Int8Gemm::pack(b, integers.data(), scale); });
    count("int8_product", [&] {
        kernel::Int8Gemm::product(a, integers.data(), scale, nullptr, 0, c,
                                  reinterpret_cast<std::byte*>(memory.data));
    });

    std::vector<Token> column(n + kernel::sample_lanes);
    Numbers value(n + kernel::sample_lanes);
    Index kept = 0;
    count("sample", [&] {
        kept =
            kernel::sample(n, left.data, 5.f, 0.5, n + kernel::sample_lanes, column.data(), value.data).kept;
    });
    count("weighted_rows",
          [&] { kernel::add_weighted_rows(61, kept, column.data(), value.data, right.data, 61, to.data); });
}

}  // namespace

int main() {
    softmax();
    rows();
    gates();
    products();
    count_models();
}
