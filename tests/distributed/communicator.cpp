#include <isogloss/distributed/thread_group.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace isogloss;
using distributed::ThreadGroup;

namespace {

// What every rank makes of it, by rank.
template <class F> auto of_each(Index n, F&& f) {
    std::vector<decltype(f(std::declval<ThreadGroup::Member&>()))> found(static_cast<std::size_t>(n));
    ThreadGroup::run(n, [&](auto& ranks) { found[static_cast<std::size_t>(ranks.rank())] = f(ranks); });
    return found;
}

}  // namespace

TEST_CASE("Threads as ranks: each function moves what it says", "[distributed][communicator]") {
    const Index n = GENERATE(1, 2, 3, 5);
    const auto every = [&](const auto& found, const auto& expected) {
        return std::count(found.begin(), found.end(), expected) == n;
    };

    REQUIRE(of_each(n, [](auto& r) { return r.rank(); }).back() == n - 1);
    REQUIRE(every(of_each(n, [](auto& r) { return r.size(); }), n));

    const auto root = of_each(n, [&](auto& r) {
        std::vector<double> v{double(r.rank()), 7};
        distributed::broadcast(r, std::span(v), n - 1);
        return v;
    });
    REQUIRE(every(root, std::vector<double>{double(n - 1), 7}));

    // Rank r has r + 1 letters.
    std::string whole;
    std::vector<Index> counts;
    for (Index r = 0; r < n; ++r)
        whole.append(static_cast<std::size_t>(r + 1), static_cast<char>('a' + r)), counts.push_back(r + 1);
    REQUIRE(every(of_each(n,
                          [&](auto& r) {
                              const std::string own(static_cast<std::size_t>(r.rank() + 1),
                                                    static_cast<char>('a' + r.rank()));
                              std::string all(whole.size(), '?');
                              r.all_gather(std::as_bytes(std::span(own)),
                                           std::as_writable_bytes(std::span(all)), counts);
                              return all;
                          }),
                  whole));

    // Rank r sends q + 1 bytes, all 10 r + q, to rank q.
    const auto exchanged = of_each(n, [&](auto& r) {
        std::vector<char> send, received(static_cast<std::size_t>(n * (r.rank() + 1)));
        for (Index q = 0; q < n; ++q)
            send.insert(send.end(), static_cast<std::size_t>(q + 1), static_cast<char>(10 * r.rank() + q));
        const std::vector<Index> from(static_cast<std::size_t>(n), r.rank() + 1);
        r.all_to_all(std::as_bytes(std::span(send)), counts, std::as_writable_bytes(std::span(received)),
                     from);
        return received;
    });
    for (Index q = 0; q < n; ++q) {
        std::vector<char> expected;
        for (Index r = 0; r < n; ++r)
            expected.insert(expected.end(), static_cast<std::size_t>(q + 1), static_cast<char>(10 * r + q));
        REQUIRE(exchanged[static_cast<std::size_t>(q)] == expected);
    }
}

TEST_CASE("Ranks that disagree on sizes are refused, whoever reads", "[distributed][communicator][errors]") {
    const std::string call = GENERATE("broadcast", "gather", "more", "exchange", "beyond", "root");
    CAPTURE(call);
    const auto run = [&](auto& ranks) {
        const bool other = ranks.rank() == 1;
        std::vector<double> own(other ? 2000 : 3), whole(6);
        const auto bytes = std::as_bytes(std::span(own));
        const auto all = std::as_writable_bytes(std::span(whole));
        const std::vector<Index> counts(2, 24), more(2, 48), beyond(2, 80000);
        if (call == "broadcast") ranks.broadcast(std::as_writable_bytes(std::span(own)), 0);
        if (call == "root") ranks.broadcast(std::as_writable_bytes(std::span(own)), 2);
        if (call == "gather") ranks.all_gather(bytes, all, counts);
        if (call == "more") ranks.all_gather(bytes.first(24), all, more);  // than `whole` has room for
        if (call == "exchange") ranks.all_to_all(bytes, other ? counts : more, all, counts);
        if (call == "beyond") ranks.all_to_all(bytes, beyond, all, counts);
    };
    REQUIRE_THROWS_AS(ThreadGroup::run(2, run), UsageError);
}

TEST_CASE("A rank that fails ends the others, and its error comes out", "[distributed][communicator]") {
    const Index bad = GENERATE(0, 2);
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(3,
                                            [&](auto& ranks) {
                                                ranks.barrier();
                                                if (ranks.rank() == bad) throw DataError("of rank ", bad);
                                                ranks.barrier();
                                                ranks.barrier();
                                            }),
                           DataError, says("of rank " + std::to_string(bad)));
    // One that ends while others wait for it does, too.
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(3,
                                            [&](auto& ranks) {
                                                if (ranks.rank() != bad) ranks.barrier();
                                            }),
                           UsageError, says("has ended while others wait"));
    REQUIRE_THROWS_MATCHES(ThreadGroup::run(0, [](auto&) {}), UsageError, says("thread group", "n", "0"));
}
