// oneDNN's side of the comparison: its LSTM primitive, forward training and backward, and its product of matrices, which is
// its kernel brgemm on processors from AVX2 on; weights packed once.
//
//     peer_onednn f32|bf16        rows as compare.py names them, lstm and product
//
// The thread count is OMP_NUM_THREADS, or the processors the process may use if oneDNN runs through SYCL. In bf16 the layer's
// input, output, hidden state and weights are of that type; cell state, bias and all gradients are float, as
// oneDNN requires. Compiles against oneDNN 2 and 3.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

using namespace dnnl;
using Arguments = std::unordered_map<int, memory>;

namespace {

constexpr auto f32 = memory::data_type::f32;
constexpr auto any = memory::format_tag::any;

struct Row {
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};

    Row() = default;
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;
    virtual ~Row() = default;
    virtual void round() = 0;

    /// About 0.01 everywhere.
    memory make(const memory::desc& d) {
        memory m(d, cpu);
        void* const data = m.map_data();
#if DNNL_VERSION_MAJOR >= 3
        const bool is_float = d.get_data_type() == f32;
#else
        const bool is_float = d.data_type() == f32;
#endif
        if (is_float) std::fill_n(static_cast<float*>(data), d.get_size() / sizeof(float), 0.01f);
        else std::fill_n(static_cast<std::uint16_t*>(data), d.get_size() / 2, std::uint16_t{0x3c24});
        m.unmap_data(data);
        return m;
    }
};

struct Lstm : Row {
    lstm_forward forward;
    lstm_backward backward;
    Arguments forward_arguments, backward_arguments;

    Lstm(memory::data_type type, memory::dim n, memory::dim T, memory::dim B) {
        using tag = memory::format_tag;
        const memory::dims sequence{T, B, n}, state{1, 1, B, n}, weights{1, 1, n, 4, n}, bias{1, 1, 4, n};
        const memory::desc x(sequence, type, tag::tnc), dx(sequence, f32, tag::tnc),
            s(state, type, tag::ldnc), c(state, f32, tag::ldnc), b(bias, f32, tag::ldgo),
            w(weights, type, any), dw(weights, f32, any);
        const auto training = prop_kind::forward_training, back = prop_kind::backward;
        const auto direction = rnn_direction::unidirectional_left2right;
#if DNNL_VERSION_MAJOR >= 3
        const lstm_forward::primitive_desc fwd(cpu, training, direction, x, s, c, w, w, b, x, s, c);
        const lstm_backward::primitive_desc bwd(cpu, back, direction, x, s, c, w, w, b, x, s, c,  //
                                                dx, c, c, dw, dw, b, dx, c, c, fwd);
#else
        const lstm_forward::primitive_desc fwd({training, direction, x, s, c, w, w, b, x, s, c}, cpu);
        const lstm_backward::primitive_desc bwd(
            {back, direction, x, s, c, w, w, b, x, s, c, dx, c, c, dw, dw, b, dx, c, c}, cpu, fwd);
#endif
        forward = lstm_forward(fwd);
        backward = lstm_backward(bwd);
        forward_arguments = {{DNNL_ARG_SRC_LAYER, make(x)},
                             {DNNL_ARG_SRC_ITER, make(s)},
                             {DNNL_ARG_SRC_ITER_C, make(c)},
                             {DNNL_ARG_WEIGHTS_LAYER, make(fwd.weights_layer_desc())},
                             {DNNL_ARG_WEIGHTS_ITER, make(fwd.weights_iter_desc())},
                             {DNNL_ARG_BIAS, make(b)},
                             {DNNL_ARG_DST_LAYER, make(x)},
                             {DNNL_ARG_DST_ITER, make(s)},
                             {DNNL_ARG_DST_ITER_C, make(c)},
                             {DNNL_ARG_WORKSPACE, make(fwd.workspace_desc())}};
        backward_arguments = forward_arguments;
        backward_arguments[DNNL_ARG_WEIGHTS_LAYER] = make(bwd.weights_layer_desc());
        backward_arguments[DNNL_ARG_WEIGHTS_ITER] = make(bwd.weights_iter_desc());
        for (const auto& [argument, d] : std::vector<std::pair<int, memory::desc>>{
                 {DNNL_ARG_DIFF_SRC_LAYER, dx},
                 {DNNL_ARG_DIFF_SRC_ITER, c},
                 {DNNL_ARG_DIFF_SRC_ITER_C, c},
                 {DNNL_ARG_DIFF_WEIGHTS_LAYER, bwd.diff_weights_layer_desc()},
                 {DNNL_ARG_DIFF_WEIGHTS_ITER, bwd.diff_weights_iter_desc()},
                 {DNNL_ARG_DIFF_BIAS, b},
                 {DNNL_ARG_DIFF_DST_LAYER, dx},
                 {DNNL_ARG_DIFF_DST_ITER, c},
                 {DNNL_ARG_DIFF_DST_ITER_C, c}})
            backward_arguments[argument] = make(d);
    }
    void round() override {
        forward.execute(queue, forward_arguments);
        backward.execute(queue, backward_arguments);
        queue.wait();
    }
};

/// [m, k] · [k, n]; in bf16 both factors are of that type already, the result is float.
struct Product : Row {
    matmul primitive;
    Arguments arguments;

    Product(memory::data_type type, memory::dim m, memory::dim k, memory::dim n) {
        const memory::desc a({m, k}, type, memory::format_tag::ab), b({k, n}, type, any),
            c({m, n}, f32, memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
        const matmul::primitive_desc described(cpu, a, b, c);
#else
        const matmul::primitive_desc described({a, b, c}, cpu);
#endif
        std::cerr << "# " << m << " x " << k << " x " << n << ": " << described.impl_info_str() << std::endl;
        primitive = matmul(described);
        arguments = {{DNNL_ARG_SRC, make(a)},
                     {DNNL_ARG_WEIGHTS, make(described.weights_desc())},
                     {DNNL_ARG_DST, make(c)}};
    }
    void round() override {
        primitive.execute(queue, arguments);
        queue.wait();
    }
};

}  // namespace

int main(int argc, char** argv) {
    const std::string type = argc == 2 ? argv[1] : "";
    if (type != "f32" && type != "bf16") {
        std::cerr << "usage: peer_onednn f32|bf16, then names of rows on standard input\n";
        return 2;
    }
#ifdef PEER_ONEDNN_LIBRARIES
    // With SYCL, oneDNN finds the processor through a driver in the folder of its own library.
    setenv("OCL_ICD_FILENAMES", PEER_ONEDNN_LIBRARIES "/libintelocl.so", 0);
#endif
    const auto* version = dnnl_version();
    std::cerr << "# oneDNN " << version->major << '.' << version->minor << '.' << version->patch << std::endl;
    std::string made;
    std::unique_ptr<Row> row;
    for (std::string name; std::getline(std::cin, name);) {
        if (name != made) {
            std::string kind, loss;
            memory::dim n = 0, V = 0, T = 0, B = 0;
            char slash = 0;
            std::istringstream parts(name);
            std::getline(parts, kind, '/'), std::getline(parts, loss, '/');
            parts >> n >> slash >> V >> slash >> T >> slash >> B;
            const auto numbers = type == "f32" ? f32 : memory::data_type::bf16;
            made = name;
            try {
                if (kind == "product") row = std::make_unique<Product>(numbers, T * B, n, V);
                else row = std::make_unique<Lstm>(numbers, n, T, B);
            } catch (const error& e) {  // bfloat16 on a processor without it
                std::cerr << "# " << name << ": " << e.what() << std::endl;
                row.reset();
            }
        }
        if (!row) {
            std::cout << "inf" << std::endl;
            continue;
        }
        std::vector<double> seconds;
        const auto since = [](auto from) {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
        };
        row->round();
        row->round();
        const auto begin = std::chrono::steady_clock::now();
        do {
            const auto start = std::chrono::steady_clock::now();
            row->round();
            seconds.push_back(since(start));
        } while (since(begin) < 0.3);
        std::nth_element(seconds.begin(), seconds.begin() + static_cast<long>(seconds.size() / 2),
                         seconds.end());
        std::cout << seconds[seconds.size() / 2] << std::endl;
    }
}
