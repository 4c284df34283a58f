/// @file laws.hpp  isogloss::check::laws, with allocations counted (laws.cpp).
///
///     REQUIRE(laws([](auto& g) {
///                 return check::probe(g, g.template add<Rnn>("rnn", {.units = 4}, g.input("x", 3)));
///             }) == "");
#pragma once

#include <isogloss/check.hpp>

using isogloss::check::broken_laws;
using isogloss::check::laws;
