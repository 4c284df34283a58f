/// @file ranks.hpp  The processes that mpirun has started, or this one alone.
#pragma once

#include <exception>
#include <isogloss/distributed/communicator.hpp>
#include <memory>
#include <span>
#include <string>

namespace program {

namespace ig = isogloss;

/// An Asynchronous communicator of the processes that a launcher of MPI has started together, and of this process alone
/// where none has. From the second rank on nothing is printed on standard output.
class Ranks {
public:
    /// Initialises MPI where a launcher is at work. Throws UsageError where one is, but the program was built without
    /// MPI: its processes would write the same files.
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
    void all_reduce(std::span<float> numbers);
    void all_reduce(std::span<double> numbers);
    ig::Index start(int tag, std::span<const ig::distributed::Outgoing> out,
                    std::span<const ig::distributed::Incoming> in);
    bool done(ig::Index number);
    void finish(ig::Index number);
    bool concurrent() const;

    /// Whether `yes` on any rank. Collective.
    bool any(bool yes);

    /// Says what and ends the program on all ranks, with this status where the launcher hands it on. What all ranks say
    /// is told once.
    [[noreturn]] void end(int status, const std::string& what);

    /// What f() returns. Where it throws and there are other ranks, says so and ends them all; an error that all have,
    /// such as a wrong option, is told once.
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

/// For a command that one process does: where a launcher has started several, says so once and ends them all, before they
/// write the same files. `together` names the commands that ranks do together.
void require_alone(const std::string& command, const std::string& together);

}  // namespace program
