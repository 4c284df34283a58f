/// @file mpi.hpp  Ranks that are processes, on one machine or many: the component isogloss::mpi.
///
/// The host program owns MPI: it calls MPI_Init or MPI_Init_thread (MPI_THREAD_FUNNELED is enough) before it makes
/// a Communicator, and MPI_Finalize after the last one is destroyed. Any implementation of MPI 3.0 or later.
#pragma once

// Excludes the C++ bindings that some versions add, which were withdrawn in MPI 3.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <isogloss/distributed/communicator.hpp>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace mpi {

/// The processes of an MPI communicator, as a distributed::Communicator. Works on a duplicate of it, so that its
/// messages never mix with those of the host program. Called by one thread at a time.
///
///     MPI_Init(&argc, &argv);
///     {
///         mpi::Communicator ranks;
///         mpi::guarded(ranks, [&] { … });
///     }
///     MPI_Finalize();
///
/// Messages may be of any size: beyond `largest` bytes they are sent in pieces. Throws UsageError if MPI is not
/// initialised, and Error with MPI's own text if it reports a failure.
class Communicator {
public:
    /// `largest`: most bytes moved by one MPI call, 1 … 2³¹ - 1.
    explicit Communicator(MPI_Comm of = MPI_COMM_WORLD, Index largest = std::numeric_limits<int>::max())
        : largest_(largest) {
        require("mpi", "largest", largest, 1, std::numeric_limits<int>::max());
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
        for (Index first = 0; first < std::ssize(bytes); first += largest_) {
            const auto piece = piece_of(bytes, first);
            check("MPI_Bcast", MPI_Bcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE,
                                         static_cast<int>(root), comm_));
        }
    }
    void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                    std::span<const Index> counts) {
        exchange([&](Index) { return part; }, [&](Index r) { return of_rank(whole, counts, r); });
    }
    void all_to_all(std::span<const std::byte> send, std::span<const Index> sent,
                    std::span<std::byte> received, std::span<const Index> counts) {
        exchange([&](Index r) { return of_rank(send, sent, r); },
                 [&](Index r) { return of_rank(received, counts, r); });
    }

private:
    static void check(const char* what, int status) {
        if (status == MPI_SUCCESS) return;
        char text[MPI_MAX_ERROR_STRING] = {};
        int length = 0;
        MPI_Error_string(status, text, &length);
        throw Error("mpi: ", what, " failed: ", text);
    }
    // The bytes of rank r, which follow those of the ranks before it.
    template <class Bytes> static Bytes of_rank(Bytes all, std::span<const Index> counts, Index r) {
        const auto rank = static_cast<std::size_t>(r);
        const Index before = std::accumulate(counts.begin(), counts.begin() + r, Index{0});
        return all.subspan(static_cast<std::size_t>(before), static_cast<std::size_t>(counts[rank]));
    }
    // At most `largest` bytes, none beyond the end.
    template <class Bytes> Bytes piece_of(Bytes all, Index first) const {
        const Index from = std::min(first, std::ssize(all)), n = std::min(largest_, std::ssize(all) - from);
        return all.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(n));
    }
    // Sends outgoing(r) to every rank r while receiving incoming(r) from it, a pair of ranks at a time.
    template <class Out, class In> void exchange(Out&& outgoing, In&& incoming) {
        for (Index step = 0; step < size_; ++step) {
            const Index next = (rank_ + step) % size_, previous = (rank_ - step + size_) % size_;
            const std::span<const std::byte> out = outgoing(next);
            const std::span<std::byte> in = incoming(previous);
            const auto rank_of = [](auto piece, Index rank) {
                return piece.empty() ? MPI_PROC_NULL : static_cast<int>(rank);
            };
            for (Index first = 0; first < std::max(std::ssize(out), std::ssize(in)); first += largest_) {
                const auto sent = piece_of(out, first);
                const auto received = piece_of(in, first);
                check("MPI_Sendrecv",
                      MPI_Sendrecv(sent.data(), static_cast<int>(sent.size()), MPI_BYTE, rank_of(sent, next),
                                   0, received.data(), static_cast<int>(received.size()), MPI_BYTE,
                                   rank_of(received, previous), 0, comm_, MPI_STATUS_IGNORE));
            }
        }
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    Index largest_, rank_ = 0, size_ = 1;
};

static_assert(distributed::Communicator<Communicator>);

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
