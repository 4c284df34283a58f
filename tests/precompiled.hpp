/// @file precompiled.hpp  What nearly all tests include, read once by the compiler. Not for the headers' own proof that
/// they compile alone, which headers_alone gives. JSON and Eigen are left to those who read them: inline functions that
/// use their templates would make them in every file.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <isogloss/compiled.hpp>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
