#include <isogloss/hmm/hmm.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/lds.hpp>

#include "catch.hpp"

namespace ig = isogloss;

TEST_CASE("With the core and lds.hpp together every short name means one thing", "[lds][namespaces]") {
    ig::Graph<double> g({});
    g.weight("w", 5, 5, ig::identity(1));
    const auto w = g.parameter("w").values();
    for (ig::Index i = 0; i < 5; ++i)
        for (ig::Index j = 0; j < 5; ++j) CHECK(w.row(i)[j] == (i == j ? 1 : 0));
    CHECK((ig::lds::identity(5) == ig::dense::identity(5)));
    CHECK(ig::lds::identity(5)(3, 3) == 1);
    CHECK(ig::hmm::Hmm({.states = 2, .symbols = 3}).states() == 2);
}
