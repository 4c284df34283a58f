// A linear dynamical system fitted by the ranks that mpirun has started, however many: prints "right" and a checksum of it.
#include <cstdio>
#include <isogloss/distributed/lds.hpp>
#include <isogloss/file/checksum.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/mpi.hpp>

namespace ig = isogloss;
namespace lds = isogloss::lds;
using ig::Index;

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    {
        ig::mpi::Communicator ranks;
        ig::mpi::guarded(ranks, [&] {
            constexpr Index V = 40, shards = 7;
            const ig::Random random(1, 1);
            std::vector<ig::Token> text{0};
            for (Index t = 1; t < 20000; ++t)
                text.push_back(static_cast<ig::Token>(t % 3 == 0 ? random.below(t, V)
                                                                 : (text.back() + random.below(t, 4)) % V));
            ig::counts::LagCounts counts(V, {.lags = 4});
            counts.add(text);
            // In double: sums of a few floats in double are exact, and so the same in any order.
            const lds::LagMoments<double> moments(counts);
            auto system =
                ig::distributed::subspace_identification(moments, {.states = 6, .lags = 2}, ranks).system;
            double before = -1e300;
            for (int i = 0; i < 4; ++i) {
                auto statistics = ig::distributed::asos_statistics(system, lds::steady_state(system), moments,
                                                                   4, ranks, shards);
                if (!(statistics.log_likelihood > before - 1e-3))
                    throw ig::NumericError("not right: EM has lost likelihood");
                before = statistics.log_likelihood;
                lds::maximise(std::move(statistics), system);
            }
            ig::file::Crc64 sum;
            sum.add(std::as_bytes(std::span(system.C.data(), system.C.size())));
            sum.add(std::as_bytes(std::span(system.A.data(), system.A.size())));
            std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks.size()));
            const std::uint64_t own = sum.value();
            const std::vector<Index> bytes(all.size(), Index{sizeof own});
            ranks.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                             bytes);
            for (const auto s : all)
                if (s != own) throw ig::NumericError("not right: the ranks have different systems");
            if (ranks.rank() == 0)
                std::printf("right, system %016llx\n", static_cast<unsigned long long>(own));
        });
    }
    MPI_Finalize();
}
