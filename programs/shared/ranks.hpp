/// @file ranks.hpp  The processes that mpirun has started, or this one alone.
#pragma once

#include <exception>
#include <isogloss/distributed/communicator.hpp>
#include <memory>
#include <span>
#include <string>

namespace program {

namespace ig = isogloss;

/// A communicator of the processes that an MPI launcher has started together, or of this
/// process alone if none has. Only the first rank prints on standard output.
class Ranks {
public:
    /// Initialises MPI if launched(). Throws UsageError if launched(), not as the only one, but built without MPI: the processes
    /// would write the same files.
    Ranks();
    ~Ranks();
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    /// Whether a launcher has started this process.
    static bool launched();

    ig::Index rank() const;
    ig::Index size() const;
    bool first() const { return rank() == 0; }
    void barrier();
    void broadcast(std::span<std::byte> bytes, ig::Index root);
    void all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                    std::span<const ig::Index> counts);
    void all_to_all(std::span<const std::byte> send, std::span<const ig::Index> sent,
                    std::span<std::byte> received, std::span<const ig::Index> counts);

    /// Whether `yes` is true on any rank. Collective.
    bool any(bool yes);

    /// Prints `what` and ends the program on all ranks, with this status if the launcher passes it on. What
    /// all ranks print is printed once.
    [[noreturn]] void end(int status, const std::string& what);

    /// Returns f(). If it throws and there are other ranks, prints the error and ends them all; an error
    /// common to all, such as a wrong option, is printed once.
    template <class F> auto guard(F&& f) {
        try {
            return f();
        } catch (const std::exception& error) {
            if (size() > 1) fail(error);
            throw;
        }
    }

private:
    [[noreturn]] void fail(const std::exception& error);

    struct Mpi;
    std::unique_ptr<Mpi> mpi_;
};

/// For a command of one process: if a launcher has started several, reports it once and ends them all before
/// they write the same files. `together` names the commands that ranks can run together.
void require_alone(const std::string& command, const std::string& together);

}  // namespace program
