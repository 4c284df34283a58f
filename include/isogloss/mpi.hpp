/// @file mpi.hpp  Ranks that are processes, on one machine or many: the component isogloss::mpi.
///
/// The host program owns MPI: it calls MPI_Init or MPI_Init_thread (MPI_THREAD_FUNNELED is enough) before it makes
/// a Communicator, and MPI_Finalize after the last one is destroyed. Any implementation of MPI 3.0 or later. With
/// MPI_THREAD_SERIALIZED gradients are sent during the backward pass (DataParallelOptions::overlap).
#pragma once

// Excludes the C++ bindings that some versions add, which were withdrawn in MPI 3.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <isogloss/distributed/data_parallel.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace mpi {

/// The processes of an MPI communicator, as a distributed::Communicator and distributed::Asynchronous. Works on a
/// duplicate of it, so that its messages never mix with those of the host program. Called by one thread at a time.
///
///     MPI_Init(&argc, &argv);
///     {
///         mpi::Communicator ranks;
///         mpi::guarded(ranks, [&] { … });
///     }
///     MPI_Finalize();
///
/// Messages may be of any size: beyond 2³¹ - 1 bytes they are sent in pieces. Throws UsageError if MPI is not
/// initialised, and Error with MPI's own text if it reports a failure.
class Communicator {
public:
    /// `largest`: most bytes moved by one MPI call, 64 … 2³¹ - 1.
    explicit Communicator(MPI_Comm of = MPI_COMM_WORLD, Index largest = std::numeric_limits<int>::max())
        : largest_(largest) {
        require("mpi", "largest", largest, 64, std::numeric_limits<int>::max());
        int running = 0, over = 0;
        MPI_Initialized(&running), MPI_Finalized(&over);
        if (!running || over)
            throw UsageError("mpi: MPI is ", over ? "finalised" : "not initialised",
                             "; call MPI_Init before creating a Communicator, and MPI_Finalize after the "
                             "last one is destroyed");
        check("MPI_Comm_dup", MPI_Comm_dup(of, &comm_));
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
        int n = 0;
        MPI_Comm_rank(comm_, &n), rank_ = n;
        MPI_Comm_size(comm_, &n), size_ = n;
    }
    ~Communicator() {
        int over = 0;
        MPI_Finalized(&over);
        if (!over) MPI_Comm_free(&comm_);
    }
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    Index rank() const { return rank_; }
    Index size() const { return size_; }
    MPI_Comm handle() const { return comm_; }  ///< the duplicate

    /// Ends the processes of all ranks, with this exit status if the launcher passes it on.
    [[noreturn]] void abort(int status) const {
        // If asked to abort a duplicate, MPICH does not end ranks that are computing rather than waiting in MPI.
        int same = MPI_UNEQUAL;
        MPI_Comm_compare(comm_, MPI_COMM_WORLD, &same);
        MPI_Abort(same == MPI_CONGRUENT ? MPI_COMM_WORLD : comm_, status);
        std::abort();  // MPI_Abort returns if it fails
    }

    void barrier() { check("MPI_Barrier", MPI_Barrier(comm_)); }
    void broadcast(std::span<std::byte> bytes, Index root) {
        for_pieces(std::ssize(bytes), [&](Index first, int n) {
            check("MPI_Bcast", MPI_Bcast(bytes.data() + first, n, MPI_BYTE, static_cast<int>(root), comm_));
        });
    }
    void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                    std::span<const Index> counts) {
        if (std::ssize(whole) <= largest_) {
            std::vector<int> n, at;
            layout(counts, n, at);
            check("MPI_Allgatherv", MPI_Allgatherv(part.data(), static_cast<int>(part.size()), MPI_BYTE,
                                                   whole.data(), n.data(), at.data(), MPI_BYTE, comm_));
            return;
        }
        Index first = 0;
        for (Index r = 0; r < size_; ++r) {
            const auto of_rank =
                whole.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(counts[at(r)]));
            if (r == rank_) std::copy(part.begin(), part.end(), of_rank.begin());
            broadcast(of_rank, r);
            first += counts[at(r)];
        }
    }
    void all_to_all(std::span<const std::byte> send, std::span<const Index> sent,
                    std::span<std::byte> received, std::span<const Index> counts) {
        double longest[] = {static_cast<double>(std::max(send.size(), received.size()))};
        all_reduce(std::span<double>(longest), MPI_MAX);  // every rank takes the same branch
        if (longest[0] <= static_cast<double>(largest_)) {
            std::vector<int> n, from, m, to;
            layout(sent, n, from), layout(counts, m, to);
            check("MPI_Alltoallv", MPI_Alltoallv(send.data(), n.data(), from.data(), MPI_BYTE,
                                                 received.data(), m.data(), to.data(), MPI_BYTE, comm_));
            return;
        }
        const auto before = [](std::span<const Index> of, Index rank) {
            Index n = 0;
            for (Index r = 0; r < rank; ++r) n += of[at(r)];
            return n;
        };
        for (Index step = 0; step < size_; ++step) {
            const Index to = (rank_ + step) % size_, from = (rank_ - step + size_) % size_;
            const distributed::Outgoing out{to, send.subspan(at(before(sent, to)), at(sent[at(to)]))};
            const distributed::Incoming in{from,
                                           received.subspan(at(before(counts, from)), at(counts[at(from)]))};
            finish(start(0, std::span(&out, 1), std::span(&in, 1)));
        }
    }
    Index start(int tag, std::span<const distributed::Outgoing> out,
                std::span<const distributed::Incoming> in) {
        Index number = 0;
        while (number < std::ssize(under_way_) && !under_way_[at(number)].empty()) ++number;
        if (number == std::ssize(under_way_)) under_way_.emplace_back();
        auto& requests = under_way_[at(number)];
        requests.push_back(MPI_REQUEST_NULL);  // even with nothing to move, the number counts as in use
        const auto move = [&](const char* what, auto call, auto* bytes, Index size, Index rank) {
            for_pieces(size, [&](Index first, int n) {
                requests.push_back(MPI_REQUEST_NULL);
                check(what,
                      call(bytes + first, n, MPI_BYTE, static_cast<int>(rank), tag, comm_, &requests.back()));
            });
        };
        for (const auto& i : in) move("MPI_Irecv", MPI_Irecv, i.bytes.data(), std::ssize(i.bytes), i.from);
        for (const auto& o : out) move("MPI_Isend", MPI_Isend, o.bytes.data(), std::ssize(o.bytes), o.to);
        return number;
    }
    bool done(Index number) {
        auto& requests = under_way_[at(number)];
        int all = 0;
        check("MPI_Testall",
              MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE));
        if (all) requests.clear();
        return all != 0;
    }
    void finish(Index number) {
        auto& requests = under_way_[at(number)];
        check("MPI_Waitall",
              MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
        requests.clear();
    }
    bool concurrent() const {
        int level = MPI_THREAD_SINGLE;
        MPI_Query_thread(&level);
        return level >= MPI_THREAD_SERIALIZED;
    }
    void all_reduce(std::span<float> numbers) { all_reduce(numbers, MPI_SUM); }
    void all_reduce(std::span<double> numbers) { all_reduce(numbers, MPI_SUM); }

private:
    static std::size_t at(Index rank) { return static_cast<std::size_t>(rank); }
    static void check(const char* what, int status) {
        if (status == MPI_SUCCESS) return;
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        MPI_Error_string(status, text, &length);
        throw Error("mpi: ", what, " failed: ", text);
    }
    static void layout(std::span<const Index> counts, std::vector<int>& n, std::vector<int>& first) {
        int sum = 0;
        for (const Index c : counts) {
            n.push_back(static_cast<int>(c));
            first.push_back(sum);
            sum += static_cast<int>(c);
        }
    }
    template <class F> void for_pieces(Index n, F&& f) const {
        const Index piece = largest_ / 16 * 16;  // whole numbers of every type
        for (Index first = 0; first < n; first += piece)
            f(first, static_cast<int>(std::min(piece, n - first)));
    }
    template <class T> void all_reduce(std::span<T> numbers, MPI_Op op) {
        for_pieces(std::ssize(numbers) * Index{sizeof(T)}, [&](Index first, int n) {
            check("MPI_Allreduce",
                  MPI_Allreduce(MPI_IN_PLACE, numbers.data() + first / Index{sizeof(T)},
                                n / static_cast<int>(sizeof(T)),
                                sizeof(T) == sizeof(float) ? MPI_FLOAT : MPI_DOUBLE, op, comm_));
        });
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    std::vector<std::vector<MPI_Request>> under_way_;  // by number; an empty one is free
    Index largest_, rank_ = 0, size_ = 1;
};

static_assert(distributed::Asynchronous<Communicator>);

/// Runs f() on every rank and returns its result. If it throws anything on one, that rank writes
/// "isogloss: rank r of n: …" to standard error and ends all ranks with status 1, so that none waits for it.
template <class F> auto guarded(const Communicator& ranks, F&& f) {
    const auto report = [&ranks](std::string_view cause) {
        std::fprintf(stderr, "isogloss: rank %td of %td: %s\n", ranks.rank(), ranks.size(),
                     std::string(cause).c_str());
        std::fflush(nullptr);
    };
    try {
        return f();
    } catch (const Error& error) {
        report(error.text());
    } catch (const std::exception& error) {
        report(error.what());
    } catch (...) {
        report("an exception that is not a std::exception");
    }
    ranks.abort(1);
}

}}}  // namespace isogloss::mpi
