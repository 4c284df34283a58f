// oneDNN's side of the comparison: its LSTM primitive, forward training and backward, weights packed once.
//
//     peer_onednn        the thread count is OMP_NUM_THREADS; rows as compare.py names them, lstm alone
#include <algorithm>
#include <chrono>
#include <functional>
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

struct Lstm {
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};
    lstm_forward forward;
    lstm_backward backward;
    Arguments forward_arguments, backward_arguments;

    memory make(const memory::desc& d) {
        memory m(d, cpu);
        auto* data = static_cast<float*>(m.get_data_handle());
        for (std::size_t i = 0; i < d.get_size() / sizeof(float); ++i) data[i] = 0.01f;
        return m;
    }

    Lstm(memory::dim n, memory::dim T, memory::dim B) {
        const memory::dims sequence{T, B, n}, state{1, 1, B, n}, weights{1, 1, n, 4, n}, bias{1, 1, 4, n};
        const auto plain = [](const memory::dims& d, memory::format_tag tag) {
            return memory::desc(d, f32, tag);
        };
        const auto x = plain(sequence, memory::format_tag::tnc), s = plain(state, memory::format_tag::ldnc),
                   b = plain(bias, memory::format_tag::ldgo), w = plain(weights, any);
        const auto direction = rnn_direction::unidirectional_left2right;
        const lstm_forward::primitive_desc fwd(
            {prop_kind::forward_training, direction, x, s, s, w, w, b, x, s, s}, cpu);
        const lstm_backward::primitive_desc bwd(
            {prop_kind::backward, direction, x, s, s, w, w, b, x, s, s, x, s, s, w, w, b, x, s, s}, cpu, fwd);
        forward = lstm_forward(fwd);
        backward = lstm_backward(bwd);
        forward_arguments = {{DNNL_ARG_SRC_LAYER, make(x)},
                             {DNNL_ARG_SRC_ITER, make(s)},
                             {DNNL_ARG_SRC_ITER_C, make(s)},
                             {DNNL_ARG_WEIGHTS_LAYER, make(fwd.weights_layer_desc())},
                             {DNNL_ARG_WEIGHTS_ITER, make(fwd.weights_iter_desc())},
                             {DNNL_ARG_BIAS, make(b)},
                             {DNNL_ARG_DST_LAYER, make(x)},
                             {DNNL_ARG_DST_ITER, make(s)},
                             {DNNL_ARG_DST_ITER_C, make(s)},
                             {DNNL_ARG_WORKSPACE, make(fwd.workspace_desc())}};
        backward_arguments = forward_arguments;
        backward_arguments[DNNL_ARG_WEIGHTS_LAYER] = make(bwd.weights_layer_desc());
        backward_arguments[DNNL_ARG_WEIGHTS_ITER] = make(bwd.weights_iter_desc());
        for (const auto& [argument, d] : std::vector<std::pair<int, memory::desc>>{
                 {DNNL_ARG_DIFF_SRC_LAYER, x},
                 {DNNL_ARG_DIFF_SRC_ITER, s},
                 {DNNL_ARG_DIFF_SRC_ITER_C, s},
                 {DNNL_ARG_DIFF_WEIGHTS_LAYER, bwd.diff_weights_layer_desc()},
                 {DNNL_ARG_DIFF_WEIGHTS_ITER, bwd.diff_weights_iter_desc()},
                 {DNNL_ARG_DIFF_BIAS, b},
                 {DNNL_ARG_DIFF_DST_LAYER, x},
                 {DNNL_ARG_DIFF_DST_ITER, s},
                 {DNNL_ARG_DIFF_DST_ITER_C, s}})
            backward_arguments[argument] = make(d);
    }
    void round() {
        forward.execute(queue, forward_arguments);
        backward.execute(queue, backward_arguments);
        queue.wait();
    }
};

}  // namespace

int main() {
    std::string made;
    std::unique_ptr<Lstm> lstm;
    for (std::string name; std::getline(std::cin, name);) {
        if (name != made) {
            std::string kind, loss;
            memory::dim n = 0, V = 0, T = 0, B = 0;
            char slash = 0;
            std::istringstream parts(name);
            std::getline(parts, kind, '/'), std::getline(parts, loss, '/');
            parts >> n >> slash >> V >> slash >> T >> slash >> B;
            lstm = std::make_unique<Lstm>(n, T, B);
            made = name;
            lstm->round();
            lstm->round();
        }
        std::vector<double> seconds;
        const auto since = [](auto from) {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
        };
        const auto begin = std::chrono::steady_clock::now();
        do {
            const auto start = std::chrono::steady_clock::now();
            lstm->round();
            seconds.push_back(since(start));
        } while (since(begin) < 0.3);
        std::nth_element(seconds.begin(), seconds.begin() + static_cast<long>(seconds.size() / 2),
                         seconds.end());
        std::cout << seconds[seconds.size() / 2] << std::endl;
    }
}
