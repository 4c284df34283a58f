# Configures the project with one thing missing after another: each time the message must name the package
# to install. Needs SOURCE (the project), WORK (an own directory), COMPILER and GENERATOR.
cmake_minimum_required(VERSION 3.21)

function(without what package)
    file(REMOVE_RECURSE ${WORK})
    execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
        -DISOGLOSS_DOCS=OFF ${ARGN} -S ${SOURCE} -B ${WORK}
        RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
    if(result EQUAL 0 OR NOT said MATCHES "isogloss: .*apt-get install [^.]*${package}")
        message(FATAL_ERROR "Without ${what}: expected a message that says to install ${package}, "
            "found (${result}): ${said}")
    endif()
    message("without ${what}: says to install ${package}")
endfunction()

without(xtensor libxtensor-dev -DCMAKE_DISABLE_FIND_PACKAGE_xtensor=ON)
without(BLAS libopenblas-openmp-dev -DCMAKE_DISABLE_FIND_PACKAGE_BLAS=ON)
without(LAPACK libopenblas-openmp-dev -DCMAKE_DISABLE_FIND_PACKAGE_LAPACK=ON)
without(xtensor-blas libxtensor-blas-dev -DCMAKE_DISABLE_FIND_PACKAGE_xtensor-blas=ON)
without(xsimd libxsimd-dev -DCMAKE_DISABLE_FIND_PACKAGE_xsimd=ON)
without(nlohmann_json nlohmann-json3-dev -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)
without(Catch2 catch2 -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON)

# A BLAS that CMake takes for one and that has none of its functions
file(MAKE_DIRECTORY ${WORK})
file(WRITE ${WORK}/empty.cpp "")
execute_process(COMMAND ${COMPILER} -shared -o ${WORK}.so ${WORK}/empty.cpp COMMAND_ERROR_IS_FATAL ANY)
without("cblas_dgemm and dgeqrf_" libopenblas-openmp-dev -DBLAS_LIBRARIES=${WORK}.so -DLAPACK_LIBRARIES=${WORK}.so)
file(REMOVE_RECURSE ${WORK} ${WORK}.so)
