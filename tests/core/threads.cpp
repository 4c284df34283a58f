#include <atomic>
#include <chrono>
#include <isogloss/threads.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("threads() is one until set, and refuses none and too many", "[core][threads]") {
    REQUIRE(threads() == 1);
    threads(3);
    REQUIRE(threads() == 3);
    for (const int n : {0, -1, most_threads + 1})
        REQUIRE_THROWS_MATCHES(threads(n), UsageError, says(message("found n = ", n), "expected 1 to 1024"));
    threads(1);
}

TEST_CASE("parallel covers every item once, in pieces that are multiples of the grain", "[core][threads]") {
    for (const int n : {1, 2, 5}) {
        threads(n);
        for (const Index items : {0, 1, 7, 64, 1000}) {
            std::vector<int> seen(static_cast<std::size_t>(items), 0);
            parallel(items, 8, 4, [&](Index first, Index last, Index piece) {
                if (first % 8 != 0 || piece < 0 || piece >= 4) seen.assign(seen.size(), -100);
                for (Index i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
            });
            REQUIRE(seen == std::vector<int>(static_cast<std::size_t>(items), 1));
        }
    }
    threads(1);
}

#ifdef _OPENMP
TEST_CASE("Pieces run on threads of their own", "[core][threads]") {
    threads(2);
    std::atomic<int> here{0};  // each waits for the other, at most 30 s
    std::atomic<bool> alone{false};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    parallel(2, 1, 2, [&](Index, Index, Index) {
        ++here;
        while (here < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        if (here < 2) alone = true;
    });
    threads(1);
    CHECK_FALSE(alone);
}
#endif

TEST_CASE("An exception of a piece reaches the caller, that of the first piece", "[core][threads]") {
    for (const int n : {1, 2, 4}) {
        threads(n);
        std::atomic<int> ended{0};
        try {
            parallel(64, 1, 64, [&](Index first, Index, Index) {
                ++ended;
                throw DataError("piece from ", first);
            });
            FAIL("nothing was thrown");
        } catch (const DataError& error) {
            CHECK(error.what() == std::string("isogloss: piece from 0"));
        }
        CHECK(ended == n);
    }
    threads(1);
}

TEST_CASE("BLAS runs on one thread within a pass and on the host's number after it", "[core][threads]") {
    if (!openblas_set_num_threads) {
        WARN("this BLAS has no openblas_set_num_threads; nothing to keep from fighting");
        return;
    }
    const int host = openblas_get_num_threads();
    openblas_set_num_threads(2);
    {
        const BlasOnOneThread blas;
        REQUIRE(openblas_get_num_threads() == 1);
    }
    REQUIRE(openblas_get_num_threads() == 2);
    auto first = std::make_unique<BlasOnOneThread>();
    auto second = std::make_unique<BlasOnOneThread>();
    first.reset();  // another thread's pass may end before ours
    REQUIRE(openblas_get_num_threads() == 1);
    second.reset();
    REQUIRE(openblas_get_num_threads() == 2);
    openblas_set_num_threads(host);
}
