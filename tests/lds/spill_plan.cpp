#include <isogloss/lds/spill_plan.hpp>

#include "catch.hpp"
#include "threads.hpp"

using namespace isogloss;
using namespace isogloss::lds;

namespace {

// What a writer of files and small things take.
constexpr Index fixed = (1 << 18) + (1 << 14) + 4096 + (1 << 16);

}  // namespace

TEST_CASE("The least memory is that of 4096 tokens, worked out by hand", "[lds][spill_plan]") {
    // tokens and places of 4096 + 3 positions, two tables of 1001 words, rows and cells of one lag
    constexpr Index one = fixed + 4 * 4099 + 4 * 4099 + 8 * 1001 + 8 * (4096 + 1000);
    CHECK(SpillPlan::least_memory(1000, {.lags = 3}) == one);
    CHECK(SpillPlan::least_memory(1000, {.lags = 3, .boundary = 0}) == one + 2 * 4099);
    const Threads set(3);
    CHECK(SpillPlan::least_memory(1000, {.lags = 3}) == one + 2 * 8 * 5096);
    CHECK(SpillPlan::least_memory(1000, {.lags = 1}) == one - 2 * 8);  // two positions fewer, one lag
}

TEST_CASE("A block has as many tokens as the memory has room for", "[lds][spill_plan]") {
    const auto block = [](SpillOptions o, Index more) {
        o.memory = SpillPlan::least_memory(1000, o) + more;
        return SpillPlan(1000, o).block;
    };
    CHECK(block({.lags = 3}, 0) == 4096);
    CHECK(block({.lags = 3}, 15) == 4096);
    CHECK(block({.lags = 3}, 16) == 4097);  // 16 bytes a token
    CHECK(block({.lags = 3}, 16000) == 5096);
    CHECK(block({.lags = 3, .boundary = 0}, 18000) == 5096);
    CHECK(block({.lags = 3}, Index{1} << 50) == (Index{1} << 31) - 1 - 3);
    CHECK(SpillPlan(1000, {.lags = 3}).side_by_side == 1);
    const Threads set(3);
    CHECK(block({.lags = 7}, 32000) == 5096);  // 8 more on each further thread
    CHECK(SpillPlan(1000, {.lags = 7}).side_by_side == 3);
    CHECK(SpillPlan(1000, {.lags = 2}).side_by_side == 2);
}

TEST_CASE("Files are read through what memory there is, as many as have a buffer", "[lds][spill_plan]") {
    const auto plan = [](Index files, Index memory) {
        return SpillPlan(10, {.memory = memory, .open_files = files});
    };
    const auto buffers = [&](Index files, Index each) {
        return plan(files, fixed + files * (each + CountRunCursor::memory));
    };
    CHECK(buffers(50, 10000).buffer == 10000);
    CHECK(buffers(50, 10000).fan == 50);
    CHECK(buffers(50, 4096).buffer == 4096);
    CHECK(buffers(50, 1 << 22).buffer == 1 << 20);
    CHECK(buffers(50, 1 << 22).fan == 50);
    const SpillPlan few = plan(1000, fixed + 40 * (4096 + CountRunCursor::memory));
    CHECK(few.buffer == 4096);
    CHECK(few.fan == 40);
    CHECK(plan(2, SpillPlan::least_memory(10, {})).fan == 2);
}

TEST_CASE("A plan says what is wrong with its options", "[lds][spill_plan][errors]") {
    const SpillOptions little{.lags = 3, .memory = 1000};
    REQUIRE_THROWS_MATCHES(
        SpillPlan(1000, little), UsageError,
        says("memory = 1000 bytes", "at least 429728", "1000 words and 3 lags on 1 thread"));
    REQUIRE_THROWS_MATCHES(SpillPlan(0, {}), UsageError, says("vocabulary"));
    REQUIRE_THROWS_MATCHES(SpillPlan(5, {.lags = 1001}), UsageError, says("lags"));
    REQUIRE_THROWS_MATCHES(SpillPlan(5, {.open_files = 1}), UsageError, says("open_files"));
}
