/// @file ranks.cpp  See ranks.hpp.
#include "ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <streambuf>
#include <string_view>
#include <thread>

#ifdef WITH_MPI
#include <isogloss/mpi.hpp>
#endif

namespace program {

using Alone = ig::distributed::Alone;

// Launchers of Open MPI, of MPICH and its relatives, and of the PMIx standard set these variables.
bool Ranks::launched() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
        if (std::getenv(name)) return true;
    return false;
}

// Whether the launcher says that it has started a single process.
static bool is_only_one() {
    bool said = false;
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
        if (const char* size = std::getenv(name)) {
            if (std::string_view(size) != "1")
                return false;  // the other may be of a launcher around this one
            said = true;
        }
    return said;
}

#ifdef WITH_MPI

namespace {

// Discards what is printed.
struct Silence : std::streambuf {
    int overflow(int c) override { return traits_type::not_eof(c); }
    std::streamsize xsputn(const char*, std::streamsize n) override { return n; }
};

// MPI for the lifetime of the object.
struct Session {
    Session() {
        int level = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    }
    ~Session() { MPI_Finalize(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
};

}  // namespace

struct Ranks::Mpi {
    Session session;
    ig::mpi::Communicator world;
    Silence silence;
    std::streambuf* output = nullptr;  // that of std::cout, if it is silenced

    Mpi() {
        if (world.rank() > 0) output = std::cout.rdbuf(&silence);
    }
    ~Mpi() {
        if (output) std::cout.rdbuf(output);
    }
};

Ranks::Ranks() : mpi_(launched() ? std::make_unique<Mpi>() : nullptr) {}
ig::Index Ranks::rank() const { return mpi_ ? mpi_->world.rank() : 0; }
ig::Index Ranks::size() const { return mpi_ ? mpi_->world.size() : 1; }

// Makes a call on the communicator in use.
#define ISOGLOSS_WITH(call)            \
    if (mpi_) return mpi_->world.call; \
    return Alone().call

void Ranks::end(int status, const std::string& what) {
    // If the first rank ends for the same reason, it ends this one in this time, however busy the machine.
    if (rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(3));
    if (first()) std::cout << what << std::endl;
    else
        std::cerr << ig::message("isogloss: rank ", rank(), " of ", size(), ": ", what,
                                 '\n');  // in one write
    if (mpi_) mpi_->world.abort(status);
    std::exit(status);
}

void Ranks::fail(const std::exception& error) {
    const auto* ours = dynamic_cast<const ig::Error*>(&error);
    const std::string what(ours ? ours->text() : error.what());
    if (rank() > 0) end(1, what);
    std::cout.flush();
    // In one write: ranks and mpirun share standard error, and would print between two.
    std::cerr << ig::message("isogloss: ", what, '\n');
    mpi_->world.abort(1);
}

#else

struct Ranks::Mpi {};

Ranks::Ranks() {
    if (launched() && !is_only_one())
        throw ig::UsageError(
            "this program was started by an MPI launcher, but it was built without MPI, and its processes "
            "would write "
            "the same files. Install MPI (on Debian and Ubuntu: apt-get install libopenmpi-dev openmpi-bin), "
            "configure "
            "and build again; or start it without mpirun");
}
ig::Index Ranks::rank() const { return 0; }
ig::Index Ranks::size() const { return 1; }

#define ISOGLOSS_WITH(call) return Alone().call

// There are no other ranks.
void Ranks::end(int status, const std::string& what) {
    std::cout << what << std::endl;
    std::exit(status);
}
void Ranks::fail(const std::exception&) { std::abort(); }

#endif

Ranks::~Ranks() = default;
void Ranks::barrier() { ISOGLOSS_WITH(barrier()); }
void Ranks::broadcast(std::span<std::byte> bytes, ig::Index root) { ISOGLOSS_WITH(broadcast(bytes, root)); }
void Ranks::all_gather(std::span<const std::byte> part, std::span<std::byte> whole,
                       std::span<const ig::Index> counts) {
    ISOGLOSS_WITH(all_gather(part, whole, counts));
}
void Ranks::all_to_all(std::span<const std::byte> send, std::span<const ig::Index> sent,
                       std::span<std::byte> received, std::span<const ig::Index> counts) {
    ISOGLOSS_WITH(all_to_all(send, sent, received, counts));
}
bool Ranks::any(bool yes) {
    const auto all = ig::distributed::gathered(*this, char{yes});
    return std::ranges::count(all, char{true}) > 0;
}

static_assert(ig::distributed::Communicator<Ranks>);

void require_alone(const std::string& command, const std::string& together) {
    if (!Ranks::launched() || is_only_one()) return;
    Ranks ranks;
    ranks.guard([&] {
        if (ranks.size() > 1)
            throw ig::UsageError(ig::message(command, ": found ", ranks.size(),
                                             " ranks that mpirun has started, expected one process: each "
                                             "would do all of the work and write the same files; start it "
                                             "without mpirun (together, ranks do ",
                                             together, ')'));
    });
}

}  // namespace program
