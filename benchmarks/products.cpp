// Products of few rows by the library's own kernels, compared with BLAS on the same shapes; one thread.
//
//     products --threads=1 --benchmark_filter=logits

#include "measure.hpp"

using namespace isogloss;
using measure::Data;

namespace {

using Skinny = kernel::SkinnyGemm<float>;
using Packed = kernel::Packed<float>;

// Rows, terms or width, and the larger side.
struct Shape {
    Index rows, width, large;
    explicit Shape(const benchmark::State& state)
        : rows(state.range(0)), width(state.range(1)), large(state.range(2)) {}
    double flops() const { return 2.0 * double(rows) * double(width) * double(large); }
};

/// Products per second by BLAS, beside those of the row.
void report_floor(benchmark::State& state, const Shape& shape, double seconds) {
    state.counters["floor_GFLOP/s"] = shape.flops() / seconds / 1e9;
}

/// H E': some rows of hidden states and a table, read in place. Beside it the same with E' packed before, and the time
/// of packing: one that stays the same over many products is packed once.
void logits(benchmark::State& state) {
    const Shape shape(state);
    Data hidden(shape.rows * shape.width), table(shape.large * shape.width), out(shape.rows * shape.large),
        packed(Skinny::size(shape.rows, shape.width)), packed_table(Packed::size(shape.width, shape.large));
    const auto H = hidden.matrix(shape.rows, shape.width), E = table.matrix(shape.large, shape.width),
               Z = out.matrix(shape.rows, shape.large);
    const auto [skinny, floor, by_packed, packing] = measure::against_floor(
        state, shape.flops(), double(shape.rows),
        [&] {
            Skinny::pack_left(H, packed.data());
            Skinny::product_transposed(packed.data(), E, 0.f, Z);
        },
        [&] { measure::product(H, t(E), 0.f, Z); }, [&] { Packed::add_product(H, packed_table.data(), Z); },
        [&] { Packed::pack(t(E), packed_table.data()); });
    report_floor(state, shape, floor);
    state.counters["packed_GFLOP/s"] = shape.flops() / by_packed / 1e9;
    state.counters["packed_ms"] = 1e3 * by_packed;
    state.counters["packing_ms"] = 1e3 * packing;
}

/// dZ E: the gradient by some rows of hidden states.
void states(benchmark::State& state) {
    const Shape shape(state);
    Data out(shape.rows * shape.width), table(shape.large * shape.width), logits(shape.rows * shape.large);
    const auto dH = out.matrix(shape.rows, shape.width), E = table.matrix(shape.large, shape.width),
               dZ = logits.matrix(shape.rows, shape.large);
    const auto medians = measure::against_floor(
        state, shape.flops(), double(shape.rows), [&] { Skinny::product(dZ, E, 0.f, dH); },
        [&] { measure::product(dZ, E, 0.f, dH); });
    report_floor(state, shape, medians[1]);
}

/// S U: a step of a recurrent layer, its matrix packed before.
void recurrent(benchmark::State& state) {
    const Shape shape(state);
    Data state_rows(shape.rows * shape.width), matrix(shape.width * shape.large),
        out(shape.rows * shape.large), packed(Packed::size(shape.width, shape.large));
    const auto S = state_rows.matrix(shape.rows, shape.width), U = matrix.matrix(shape.width, shape.large),
               A = out.matrix(shape.rows, shape.large);
    Packed::pack(U, packed.data());
    const auto medians = measure::against_floor(
        state, shape.flops(), double(shape.rows), [&] { Packed::add_product(S, packed.data(), A); },
        [&] { measure::product(S, U, 1.f, A); });
    report_floor(state, shape, medians[1]);
}

void shapes_of_head(benchmark::internal::Benchmark* b) {
    b->ArgNames({"rows", "width", "V"})->UseManualTime()->MinTime(0.5);
    for (const Index rows : {8, 24, 48, 96, 192}) b->Args({rows, 200, 10000});
    for (const Index rows : {16, 64}) b->Args({rows, 650, 10000});
}

void shapes_of_cell(benchmark::internal::Benchmark* b) {
    b->ArgNames({"rows", "units", "gates"})->UseManualTime()->MinTime(0.5);
    for (const Index units : {200, 650, 1500}) b->Args({20, units, 4 * units});
}

void shapes_of_logits(benchmark::internal::Benchmark* b) {
    shapes_of_head(b);
    for (const Index rows : {64, 128, 256}) b->Args({rows, 200, 10000});
}

BENCHMARK(logits)->Apply(shapes_of_logits);
BENCHMARK(states)->Apply(shapes_of_head);
BENCHMARK(recurrent)->Apply(shapes_of_cell);

}  // namespace

int main(int argc, char** argv) { return measure::run(argc, argv); }
