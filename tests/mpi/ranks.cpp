// What mpi::Communicator moves, and what it does where a rank fails; started by mpirun with any number of ranks. Prints
// "right" and a checksum of a model that the ranks have trained together, or what is wrong.
//   ranks        everything
//   ranks fail   the last rank throws in the middle
//   ranks busy   the last rank throws while the others are at work, half a minute without a call of MPI
#include <chrono>
#include <cstdio>
#include <cstring>
#include <isogloss/distributed/baum_welch.hpp>
#include <isogloss/distributed/data_parallel.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/mpi.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace ig = isogloss;
using ig::Index;

namespace {

void expect(bool right, const std::string& what) {
    if (!right) throw ig::NumericError("not right: ", what);
}

// Each function against what it says, with calls of MPI that move at most `largest` bytes.
void functions(Index largest) {
    ig::mpi::Communicator ranks(MPI_COMM_WORLD, largest);
    const Index n = ranks.size(), own = ranks.rank();
    const std::string with = " with pieces of " + std::to_string(largest) + " bytes";
    const auto at = [](Index i) { return static_cast<std::size_t>(i); };
    ranks.barrier();

    std::vector<double> v(1000, static_cast<double>(own));
    ig::distributed::broadcast(ranks, std::span(v), n - 1);
    expect(v == std::vector<double>(1000, static_cast<double>(n - 1)), "broadcast" + with);

    // Rank r has 100 (r + 1) letters, and sends 100 (q + 1) bytes, all 10 r + q, to rank q.
    std::string whole;
    std::vector<Index> counts;
    for (Index r = 0; r < n; ++r) {
        whole.append(at(100 * (r + 1)), static_cast<char>('a' + r));
        counts.push_back(100 * (r + 1));
    }
    const std::string part(at(100 * (own + 1)), static_cast<char>('a' + own));
    std::string all(whole.size(), '?');
    ranks.all_gather(std::as_bytes(std::span(part)), std::as_writable_bytes(std::span(all)), counts);
    expect(all == whole, "all_gather" + with);

    std::vector<char> send, expected;
    for (Index q = 0; q < n; ++q) {
        send.insert(send.end(), at(100 * (q + 1)), static_cast<char>(10 * own + q));
        expected.insert(expected.end(), at(100 * (own + 1)), static_cast<char>(10 * q + own));
    }
    std::vector<char> received(expected.size());
    const std::vector<Index> from(at(n), 100 * (own + 1));
    ranks.all_to_all(std::as_bytes(std::span(send)), counts, std::as_writable_bytes(std::span(received)),
                     from);
    expect(received == expected, "all_to_all" + with);
}

// The number, which all ranks have.
std::uint64_t same_everywhere(ig::mpi::Communicator& ranks, std::uint64_t own) {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks.size()));
    const std::vector<Index> counts(all.size(), Index{sizeof own});
    ranks.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), counts);
    for (const auto s : all) expect(s == all[0], "the ranks have the same model");
    return own;
}

// A small language model, trained on 4 shards; its parameters' checksum.
std::uint64_t train(bool fail) {
    constexpr Index V = 50, steps = 5;
    const ig::Random random(1, 1);
    std::vector<ig::Token> text;
    for (Index i = 0; i < 400; ++i) text.push_back(static_cast<ig::Token>(random.below(i, V)));
    ig::mpi::Communicator ranks;
    const ig::distributed::DataParallelOptions cut{.columns = 10, .shards = 4};
    ig::Graph<float> g({.time = steps, .batch = ig::distributed::widest_shard(cut)});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, 16, ig::uniform(0.3));
    const auto h = g.add<ig::Lstm>("lstm", {.units = 16, .keep = 0.7},
                                   g.add<ig::Embedding>("embed", {.keep = 0.7}, x, E));
    const auto o = g.add<ig::Softmax>("softmax", {.vocabulary = V}, h);
    const auto l = g.add<ig::CrossEntropy>("loss", {}, o, y);
    ig::distributed::DataParallel parallel(g, g.parameters(), ranks, cut);
    ig::Sgd<float> sgd(g.parameters(), {.rate = 1, .clip = 5});
    for (const auto& batch : ig::text::Batches(text, V, {steps, cut.columns})) {
        if (fail && batch.index == 2 && ranks.rank() == ranks.size() - 1)
            throw ig::DataError("as it was asked to");
        parallel.gradients(batch, [&](const ig::text::Batch& piece) {
            g.forward(l, {x, piece.input}, {y, piece.target});
            g.backward(l);
        });
        sgd.step();
    }
    ig::file::Crc64 sum;
    for (const auto* p : g.parameters())
        sum.add(std::as_bytes(std::span(p->value, static_cast<std::size_t>(p->size()))));
    return same_everywhere(ranks, sum.value());
}

// A hidden Markov model, after three steps on 7 shards of sequences; the checksum of its parameters.
std::uint64_t train_markov() {
    const ig::Random random(1, 2);
    std::vector<std::vector<ig::Token>> texts;
    Index place = 0;
    for (int k = 0; k < 50; ++k) {
        texts.emplace_back();
        for (Index t = random.below(place++, 30); t > 0; --t)
            texts.back().push_back(static_cast<ig::Token>(random.below(place++, 20)));
    }
    ig::mpi::Communicator ranks;
    ig::hmm::Hmm model({.states = 12, .symbols = 20, .prior = 0.01});
    for (int k = 0; k < 3; ++k) ig::distributed::baum_welch_step(model, texts, ranks, 7);
    ig::file::Crc64 sum;
    for (const auto* p : {&model.initial(), &model.transition(), &model.emission()})
        sum.add(std::as_bytes(std::span(*p)));
    return same_everywhere(ranks, sum.value());
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const ig::mpi::Communicator early;
        return 2;
    } catch (const ig::UsageError& error) {
        if (!std::strstr(error.what(), "not initialised")) return 3;
    }
    MPI_Init(&argc, &argv);
    {
        ig::mpi::Communicator ranks;
        ig::mpi::guarded(ranks, [&] {
            if (argc > 1 && !std::strcmp(argv[1], "busy")) {
                if (ranks.rank() == ranks.size() - 1) throw ig::DataError("as it was asked to");
                std::this_thread::sleep_for(std::chrono::seconds(30));
                std::fprintf(stderr, "rank %td has not been ended\n", ranks.rank());
            }
            if (argc > 1 && !std::strcmp(argv[1], "number") && ranks.rank() == ranks.size() - 1) throw 7;
            for (const Index largest : {7, 1000, 1 << 20}) functions(largest);
            const std::uint64_t sum = train(argc > 1), markov = train_markov();
            if (ranks.rank() == 0)
                std::printf("right, model %016llx, hidden Markov model %016llx\n",
                            static_cast<unsigned long long>(sum), static_cast<unsigned long long>(markov));
        });
    }
    MPI_Finalize();
}
