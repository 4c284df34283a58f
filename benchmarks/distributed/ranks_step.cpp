// Times a data-parallel step, and the link between two ranks. Run by benchmarks/distributed_cost.py.
//
//     mpirun -n N ranks_step step UNITS COLUMNS SHARDS THREADS STEPS [free]
//     mpirun -n 2 ranks_step link
//
// step: the two-layer LSTM language model, V = 10,000, T = 35, its head tied or free; prints medians of rank 0 in seconds:
//     of a step, and of waiting and sending in DataParallel::gradients.
// link: prints "bytes seconds" of one-way messages between ranks 0 and 1; from 64 KiB on in both directions
//     at once, as in an exchange.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/mpi.hpp>
#include <string>
#include <vector>

#include "../word_frequencies.hpp"

namespace ig = isogloss;
using ig::Index;

namespace {

constexpr Index T = 35, V = 10000;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

void step(ig::mpi::Communicator& ranks, Index units, const ig::distributed::DataParallelOptions& cut,
          Index steps, bool tied) {
    ig::Graph<float> g({.time = T, .batch = ig::distributed::widest_shard(cut)});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, units, ig::uniform(0.1));
    auto h = g.add<ig::Embedding>("embed", {.keep = 0.7}, x, E);
    h = g.add<ig::Lstm>("lstm1", {.units = units, .keep = 0.7}, h);
    h = g.add<ig::Lstm>("lstm2", {.units = units, .keep = 0.7}, h);
    const auto o = tied ? g.add<ig::TiedSoftmax>("softmax", {}, h, E)
                        : g.add<ig::Softmax>("softmax", {.vocabulary = V}, h);
    const auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::distributed::DataParallel parallel(g, g.parameters(), ranks, cut);
    ig::Sgd<float> sgd(g.parameters(), {.rate = 0.1, .clip = 5});

    std::vector<ig::Token> text;
    const ig::Random random(3, 3);
    for (Index i = 0; i < (steps * T + 1) * cut.columns; ++i)
        text.push_back(measure::word_of_text(V, random.uniform(i)));
    std::vector<double> whole, waited;
    for (const auto& batch : ig::text::Batches(text, V, {T, cut.columns})) {
        ranks.barrier();
        const double begin = now(), before = parallel.waited();
        parallel.gradients(batch, [&](const ig::text::Batch& part) {
            g.forward(l, {x, part.input}, {y, part.target});
            g.backward(l);
        });
        sgd.step();
        if (batch.index == 0) continue;  // memory is first touched here
        whole.push_back(now() - begin);
        waited.push_back(parallel.waited() - before);
    }
    if (ranks.rank() == 0)
        std::printf("%.6f %.6f %td\n", median(whole), median(waited), g.parameters().elements() * 4);
}

void link(ig::mpi::Communicator& ranks) {
    const Index other = 1 - ranks.rank();
    for (Index bytes = 8; bytes <= Index{1} << 24; bytes *= 8) {
        const bool both = bytes >= Index{1} << 16;
        std::vector<std::byte> out(static_cast<std::size_t>(bytes)), in(out.size());
        const auto size = static_cast<int>(bytes), to = static_cast<int>(other);
        const auto send = [&] { MPI_Send(out.data(), size, MPI_BYTE, to, 0, ranks.handle()); };
        const auto receive = [&] {
            MPI_Recv(in.data(), size, MPI_BYTE, to, 0, ranks.handle(), MPI_STATUS_IGNORE);
        };
        std::vector<double> seconds;
        const double limit = now() + 1;
        for (int k = 0; k < 200; ++k) {
            ranks.barrier();
            const double begin = now();
            if (both) {
                MPI_Sendrecv(out.data(), size, MPI_BYTE, to, 0, in.data(), size, MPI_BYTE, to, 0,
                             ranks.handle(), MPI_STATUS_IGNORE);
            } else if (ranks.rank() == 0) {  // round trip
                send(), receive();
            } else {
                receive(), send();
            }
            seconds.push_back((now() - begin) / (both ? 1 : 2));
            const auto over = ig::distributed::gathered(ranks, char{now() > limit && k >= 8});
            if (over[0] || over[1]) break;
        }
        if (ranks.rank() == 0) std::printf("%td %.9f\n", bytes, median(seconds));
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    {
        ig::mpi::Communicator ranks;
        ig::mpi::guarded(ranks, [&] {
            const auto number = [&](int i) { return static_cast<Index>(std::stol(argv[i])); };
            if (argc == 2 && std::strcmp(argv[1], "link") == 0 && ranks.size() == 2) return link(ranks);
            if (argc < 7 || std::strcmp(argv[1], "step") != 0)
                throw ig::UsageError("ranks_step: expected what the top of its source says");
            ig::require("ranks_step", "STEPS", number(6), 2);  // the first is not timed
            ig::threads(static_cast<int>(number(5)));
            step(ranks, number(2), {.columns = number(3), .shards = number(4)}, number(6), argc < 8);
        });
    }
    MPI_Finalize();
}
