/// @file precompiled.hpp  What nearly all tests include, read once by the compiler. Not for the headers' own proof that
/// they compile alone, which headers_alone gives.
#pragma once

#include <isogloss/compiled.hpp>
#include <isogloss/io.hpp>
#if __has_include(<Eigen/SparseCore>)
#include <isogloss/lds.hpp>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "catch.hpp"
#include "graphs.hpp"
#include "laws.hpp"
