# Finds what the core stands on, sets isogloss_libraries, isogloss_definitions and isogloss_native, and
# proves with a tiny program that the whole of it compiles, links and runs.

# A package of at least a version, or an error with the name that Debian and Ubuntu give it, and what is given beside. Compares by
# itself: some packages (xsimd) call every other major version incompatible.
macro(isogloss_find package version debian)
    find_package(${package} QUIET)
    # What FetchContent puts in place of a package (OVERRIDE_FIND_PACKAGE) is found without a version.
    if(NOT ${package}_FOUND OR (NOT "${${package}_VERSION}" STREQUAL "" AND ${package}_VERSION VERSION_LESS ${version}))
        message(FATAL_ERROR "isogloss: ${package} (${version} or later) was not found. "
            "Found: ${${package}_VERSION} ${${package}_DIR}\n"
            "On Debian and Ubuntu: apt-get install ${debian}\n"
            "Elsewhere: install it and pass -DCMAKE_PREFIX_PATH=<where it is>." "${ARGN}")
    endif()
endmacro()

isogloss_find(xtensor 0.24 libxtensor-dev)

set(isogloss_libraries xtensor)
set(isogloss_definitions "")
if(ISOGLOSS_BLAS STREQUAL "none")
    list(APPEND isogloss_definitions ISOGLOSS_NO_BLAS)
elseif(NOT ISOGLOSS_BLAS STREQUAL "openblas")
    message(FATAL_ERROR "isogloss: ISOGLOSS_BLAS is '${ISOGLOSS_BLAS}', expected openblas or none.\n"
        "Another BLAS: leave it at openblas and pass -DBLA_VENDOR=<a vendor that CMake's FindBLAS knows>.")
else()
    # xtensor-blas looks for BLAS and LAPACK on its own and would take the slow reference ones.
    if(NOT BLA_VENDOR)
        set(BLA_VENDOR OpenBLAS)
    endif()
    find_package(BLAS QUIET)
    find_package(LAPACK QUIET)
    if(NOT BLAS_FOUND OR NOT LAPACK_FOUND)
        message(FATAL_ERROR "isogloss: no BLAS with LAPACK of vendor ${BLA_VENDOR} was found.\n"
            "On Debian and Ubuntu: apt-get install libopenblas-openmp-dev (or libopenblas-pthread-dev)\n"
            "Another BLAS: pass -DBLA_VENDOR=<a vendor that CMake's FindBLAS knows>.\n"
            "Without one, and without what needs LAPACK: pass -DISOGLOSS_BLAS=none.")
    endif()
    isogloss_find(xtensor-blas 0.20 libxtensor-blas-dev)
    list(APPEND isogloss_libraries xtensor-blas)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
list(APPEND isogloss_libraries Threads::Threads)
if(ISOGLOSS_USE_XSIMD)
    isogloss_find(xsimd 8.0 libxsimd-dev)
    list(APPEND isogloss_libraries xsimd)
    list(APPEND isogloss_definitions XTENSOR_USE_XSIMD)
endif()

set(isogloss_native "")
if(ISOGLOSS_NATIVE)
    include(CheckCXXCompilerFlag)
    check_cxx_compiler_flag(-march=native ISOGLOSS_HAS_MARCH_NATIVE)
    if(ISOGLOSS_HAS_MARCH_NATIVE)
        set(isogloss_native -march=native)
    endif()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/probe.cmake)

# OpenMP is the includer's own choice as long as it is there: the compiler that includes an installed
# isogloss need not be the one that installed it.
if(ISOGLOSS_OPENMP)
    find_package(OpenMP QUIET COMPONENTS CXX)
    if(OpenMP_CXX_FOUND)
        list(APPEND isogloss_libraries $<BUILD_INTERFACE:OpenMP::OpenMP_CXX>
            $<INSTALL_INTERFACE:$<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_CXX>>)
    else()
        message(STATUS "isogloss: ${CMAKE_CXX_COMPILER_ID} has no OpenMP here, so one thread does the work "
            "(for clang++: apt-get install libomp-dev)")
    endif()
endif()
