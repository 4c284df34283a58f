/// @file laws.hpp  isogloss::check::laws for any model, compiled once for all test programs.
///
///     REQUIRE(laws([](auto& g) {
///                 return check::probe(g, g.template add<Rnn>("rnn", {.units = 4}, g.input("x", 3)));
///             }) == "");
#pragma once

#include <functional>
#include <isogloss/check.hpp>
#include <string>
#include <vector>

/// A way to build a model, for float and for double.
struct Model {
    template <class Build> Model(Build build) : in_float(build), in_double(build) {}

    isogloss::Loss<float> operator()(isogloss::Graph<float>& g) const { return in_float(g); }
    isogloss::Loss<double> operator()(isogloss::Graph<double>& g) const { return in_double(g); }

    std::function<isogloss::Loss<float>(isogloss::Graph<float>&)> in_float;
    std::function<isogloss::Loss<double>(isogloss::Graph<double>&)> in_double;
};

/// One line for each law that the model breaks, that of allocation included; empty when all hold.
std::string laws(const Model& model, const isogloss::check::LawOptions& options = {});
/// The same as a list.
std::vector<isogloss::check::Breach> broken_laws(const Model& model,
                                                 const isogloss::check::LawOptions& options = {});
