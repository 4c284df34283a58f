# Configures the project with one thing missing after another: each time the message must name the package
# to install, and what is in `also` where that is set. Needs SOURCE (the project), WORK (an own directory), COMPILER and GENERATOR.
cmake_minimum_required(VERSION 3.21)

# One build tree for all, so that the compiler is looked at once.
function(without what package)
    execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
        -DISOGLOSS_DOCS=OFF ${ARGN} -S ${SOURCE} -B ${WORK}
        RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
    if(result EQUAL 0 OR NOT said MATCHES "isogloss: .*apt-get install [^.]*${package}.*${also}")
        message(FATAL_ERROR "Without ${what}: expected a message that says to install ${package} ${also}, "
            "found (${result}): ${said}")
    endif()
    message("without ${what}: says to install ${package}")
endfunction()

function(without_package name package)
    without(${name} ${package} -DCMAKE_DISABLE_FIND_PACKAGE_${name}=ON ${found_again})
    set(found_again -DCMAKE_DISABLE_FIND_PACKAGE_${name}=OFF PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
without_package(xtensor libxtensor-dev)
without_package(BLAS libopenblas-openmp-dev)
without_package(LAPACK libopenblas-openmp-dev)
without_package(xtensor-blas libxtensor-blas-dev)
without_package(xsimd libxsimd-dev)
set(also "leave io out of ISOGLOSS_COMPONENTS")
without_package(nlohmann_json nlohmann-json3-dev)
unset(also)
without_package(CLI11 libcli11-dev)
# A benchmark that is asked for by name
without(benchmark libbenchmark-dev ${found_again} -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON -DISOGLOSS_EXAMPLES=OFF -DISOGLOSS_PROGRAMS=OFF -DISOGLOSS_BENCHMARKS=cells)
# What a program alone needs is not needed for another.
execute_process(COMMAND ${CMAKE_COMMAND} -DISOGLOSS_EXAMPLES=01_first_model -DISOGLOSS_PROGRAMS=OFF -DISOGLOSS_BENCHMARKS=OFF -DISOGLOSS_TESTS=OFF
    -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON ${WORK}
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "01_first_model without CLI11: expected a configuration, found (${result}): ${said}")
endif()
set(found_again -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=OFF -DISOGLOSS_TESTS=ON -DISOGLOSS_EXAMPLES=ON -DISOGLOSS_PROGRAMS=ON)
without_package(Catch2 catch2)

# Names that there are not
function(refuses option value known)
    execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} -DISOGLOSS_DOCS=OFF ${found_again}
        -DISOGLOSS_TESTS=ON -D${option}=${value} -S ${SOURCE} -B ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
    if(result EQUAL 0 OR NOT said MATCHES "isogloss: ${option} names '${value}', expected a list of some of: .*${known}")
        message(FATAL_ERROR "${option}=${value}: expected a message with the names there are, found (${result}): ${said}")
    endif()
    message("${option}=${value}: refused, with the names there are")
endfunction()
file(REMOVE_RECURSE ${WORK})
set(found_again -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=OFF)
refuses(ISOGLOSS_COMPONENTS astrology lds)
file(REMOVE_RECURSE ${WORK})
refuses(ISOGLOSS_COMPONENTS ON lds)
file(REMOVE_RECURSE ${WORK})
refuses(ISOGLOSS_EXAMPLES 01_frist_model 01_first_model)
file(REMOVE_RECURSE ${WORK})
refuses(ISOGLOSS_PROGRAMS langauge_model language_model)
file(REMOVE_RECURSE ${WORK})
refuses(ISOGLOSS_BENCHMARKS cels cells)
file(REMOVE_RECURSE ${WORK})
refuses(ISOGLOSS_TEST_FOLDERS nodes node)

# A BLAS that CMake takes for one and that has none of its functions
file(WRITE ${WORK}/empty.cpp "")
execute_process(COMMAND ${COMPILER} -shared -o ${WORK}.so ${WORK}/empty.cpp COMMAND_ERROR_IS_FATAL ANY)
without("cblas_dgemm and dgeqrf_" libopenblas-openmp-dev ${found_again} -DBLAS_LIBRARIES=${WORK}.so -DLAPACK_LIBRARIES=${WORK}.so)
file(REMOVE_RECURSE ${WORK} ${WORK}.so)
