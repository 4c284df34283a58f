cmake_minimum_required(VERSION 3.21)
# Uses the library as a stranger would, in one of six ways (HOW): installed, compiled (installed, with the compiled core),
# subdirectory, pkg-config, package (a Debian package, which must hold what an installation has), without_blas.
# Needs SOURCE (the project), BUILD (its build tree), WORK (an own directory), COMPILER and GENERATOR.

function(run)
    list(JOIN ARGN " " line)
    message("$ ${line}")
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${HOW}: this failed (${result}): ${line}")
    endif()
endfunction()

function(must_fail_saying words)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
    if(result EQUAL 0 OR NOT said MATCHES "${words}")
        message(FATAL_ERROR "${HOW}: expected a failure that says \"${words}\", found (${result}): ${said}")
    endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)

if(HOW STREQUAL "without_blas")
    # Neither BLAS nor LAPACK is looked for, in the installation and in what uses it.
    set(nowhere "")
    foreach(package IN ITEMS BLAS LAPACK xtensor-blas)
        list(APPEND nowhere -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
    endforeach()
    set(alone -DISOGLOSS_TESTS=OFF -DISOGLOSS_EXAMPLES=OFF -DISOGLOSS_PROGRAMS=OFF -DISOGLOSS_BENCHMARKS=OFF -DISOGLOSS_DOCS=OFF -DISOGLOSS_COMPILED=OFF)
    set(without ${configure} -DISOGLOSS_BLAS=none ${nowhere} ${alone} -DCMAKE_INSTALL_PREFIX=${WORK}/prefix -S ${SOURCE} -B ${WORK}/without)
    foreach(wanted IN ITEMS "COMPONENTS=io\;lds" EXAMPLES=07_lds EXAMPLES=10_subspace_monitor PROGRAMS=lds_text BENCHMARKS=lds PYTHON_MODULE=ON)
        must_fail_saying("in ISOGLOSS_[A-Z_]+, expected nothing that needs LAPACK, as ISOGLOSS_BLAS is none" ${without} "-DISOGLOSS_${wanted}")
        file(REMOVE_RECURSE ${WORK}/without)
    endforeach()
    must_fail_saying("ISOGLOSS_BLAS is 'atlas', expected openblas or none" ${without} -DISOGLOSS_BLAS=atlas)
    file(REMOVE_RECURSE ${WORK}/without)
    run(${without})
    run(${CMAKE_COMMAND} --install ${WORK}/without)
    file(MAKE_DIRECTORY ${WORK}/user)
    file(WRITE ${WORK}/user/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)\nproject(user LANGUAGES CXX)\n"
        "find_package(isogloss REQUIRED COMPONENTS \${parts})\nadd_executable(consumer ${SOURCE}/tests/consumer/main.cpp)\n"
        "target_link_libraries(consumer PRIVATE isogloss::isogloss)\n")
    set(user ${configure} -DCMAKE_PREFIX_PATH=${WORK}/prefix ${nowhere} -S ${WORK}/user -B ${WORK}/build)
    must_fail_saying("'lds' needs LAPACK, and this isogloss was installed with ISOGLOSS_BLAS=none" ${user} -Dparts=lds)
    run(${user} -Dparts=)
    run(${CMAKE_COMMAND} --build ${WORK}/build)
    run(${WORK}/build/consumer)
    file(READ ${WORK}/prefix/share/pkgconfig/isogloss.pc flags)
    execute_process(COMMAND nm ${WORK}/build/consumer OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    if(flags MATCHES "blas|lapack" OR NOT flags MATCHES "-DISOGLOSS_NO_BLAS" OR symbols MATCHES "cblas|lapack")
        message(FATAL_ERROR "without_blas: found BLAS in the program, or in\n${flags}")
    endif()
    file(WRITE ${WORK}/factor.cpp "#include <isogloss/geometry/principal_angles.hpp>\n")
    must_fail_saying("needs LAPACK. found ISOGLOSS_NO_BLAS" ${COMPILER} -std=c++20 -DISOGLOSS_NO_BLAS -fsyntax-only
        -I${SOURCE}/include ${WORK}/factor.cpp)
    return()
elseif(HOW STREQUAL "subdirectory")
    run(${configure} -DISOGLOSS_SOURCE_DIR=${SOURCE} -S ${SOURCE}/tests/consumer/subdirectory -B ${WORK}/build)
    file(READ ${WORK}/build/compile_commands.json commands)
    if(commands MATCHES "-march=|tests_|-Wpedantic")
        message(FATAL_ERROR "A project that adds isogloss gets flags, tests or warnings it did not ask for")
    endif()
    # With installation, which a project needs that installs targets of its own over it: no packages but those of the project.
    file(MAKE_DIRECTORY ${WORK}/installs)
    file(WRITE ${WORK}/installs/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)\nproject(installs LANGUAGES CXX)\n"
        "include(GNUInstallDirs)\nadd_subdirectory(\${ISOGLOSS_SOURCE_DIR} isogloss)\nadd_library(above INTERFACE)\n"
        "target_link_libraries(above INTERFACE isogloss::isogloss)\n"
        "install(TARGETS above EXPORT above)\ninstall(EXPORT above DESTINATION share/above)\n")
    run(${configure} -DISOGLOSS_SOURCE_DIR=${SOURCE} -DISOGLOSS_INSTALL=ON -S ${WORK}/installs -B ${WORK}/installs/build)
    if(EXISTS ${WORK}/installs/build/CPackConfig.cmake)
        message(FATAL_ERROR "A project that adds isogloss with its installation gets isogloss's package")
    endif()
    run(${CMAKE_COMMAND} --install ${WORK}/installs/build --prefix ${WORK}/installs/prefix)
    if(NOT EXISTS ${WORK}/installs/prefix/share/doc/isogloss/LICENSE)
        message(FATAL_ERROR "isogloss's licence is not in its own folder share/doc/isogloss")
    endif()
    # A dependency that the project itself builds, in place of an installed package
    if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.24)
        file(WRITE ${WORK}/fetched/xsimd/CMakeLists.txt "add_library(xsimd INTERFACE)\n")
        file(WRITE ${WORK}/fetched/CMakeLists.txt "cmake_minimum_required(VERSION 3.24)\nproject(fetched LANGUAGES CXX)\ninclude(FetchContent)\n"
            "FetchContent_Declare(xsimd SOURCE_DIR \${CMAKE_CURRENT_SOURCE_DIR}/xsimd OVERRIDE_FIND_PACKAGE)\n"
            "add_subdirectory(\${ISOGLOSS_SOURCE_DIR} isogloss)\n")
        run(${configure} -DISOGLOSS_SOURCE_DIR=${SOURCE} -S ${WORK}/fetched -B ${WORK}/fetched/build)
    endif()
    # A second copy
    file(MAKE_DIRECTORY ${WORK}/twice)
    file(WRITE ${WORK}/twice/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)\nproject(twice LANGUAGES CXX)\n"
        "add_subdirectory(\${ISOGLOSS_SOURCE_DIR} one)\nadd_subdirectory(\${ISOGLOSS_SOURCE_DIR} two)\n")
    must_fail_saying("Expected one copy in a project" ${configure} -DISOGLOSS_SOURCE_DIR=${SOURCE} -S ${WORK}/twice -B ${WORK}/twice/build)
else()
    run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
    file(GLOB_RECURSE installed ${WORK}/prefix/share/*)
    foreach(file IN LISTS installed)
        file(READ ${file} content)
        string(FIND "${content}" "${SOURCE}" position)
        if(NOT position EQUAL -1)
            message(FATAL_ERROR "${file} names the source tree")
        endif()
    endforeach()
endif()

if(HOW STREQUAL "installed")
    # A prefix is where the user puts it, and may be moved.
    file(RENAME ${WORK}/prefix ${WORK}/moved)
    set(installed -DCMAKE_PREFIX_PATH=${WORK}/moved)
    run(${configure} ${installed} -S ${SOURCE}/tests/consumer/installed -B ${WORK}/build)
    file(MAKE_DIRECTORY ${WORK}/unknown)
    file(WRITE ${WORK}/unknown/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)\nproject(unknown LANGUAGES CXX)\n"
        "find_package(isogloss REQUIRED COMPONENTS astrology alchemy)\n")
    must_fail_saying("without the component 'astrology', 'alchemy', or has none of this name. Installed: [a-z, ]+[.]" ${configure} ${installed} -S ${WORK}/unknown
        -B ${WORK}/unknown/build)
    # What only an optional component lacks leaves the rest.
    file(MAKE_DIRECTORY ${WORK}/optional)
    file(WRITE ${WORK}/optional/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)\nproject(optional LANGUAGES CXX)\n"
        "find_package(isogloss REQUIRED OPTIONAL_COMPONENTS io lds)\n"
        "if(isogloss_io_FOUND OR NOT isogloss_lds_FOUND)\nmessage(FATAL_ERROR \"io: '\${isogloss_io_FOUND}', lds: '\${isogloss_lds_FOUND}'\")\nendif()\n")
    run(${configure} ${installed} -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -S ${WORK}/optional -B ${WORK}/optional/build)
    # What is found afterwards is the project's choice, whether isogloss was found or not.
    file(MAKE_DIRECTORY ${WORK}/vendor)
    file(WRITE ${WORK}/vendor/CMakeLists.txt "cmake_minimum_required(VERSION 3.21)\nproject(vendor LANGUAGES CXX)\n"
        "find_package(isogloss)\nif(DEFINED BLA_VENDOR)\nmessage(FATAL_ERROR \"BLA_VENDOR: '\${BLA_VENDOR}'\")\nendif()\n"
        "find_package(isogloss REQUIRED)\n")
    run(${configure} ${installed} -S ${WORK}/vendor -B ${WORK}/vendor/build)
    file(REMOVE_RECURSE ${WORK}/vendor/build)
    must_fail_saying("or a BLAS with LAPACK of vendor OpenBLAS for it, could not be found. On Debian and Ubuntu: apt-get install"
        ${configure} ${installed} -DCMAKE_DISABLE_FIND_PACKAGE_BLAS=ON -S ${WORK}/vendor -B ${WORK}/vendor/build)
    # Headers in another folder
    run(${configure} -DISOGLOSS_TESTS=OFF -DISOGLOSS_EXAMPLES=OFF -DISOGLOSS_PROGRAMS=OFF -DISOGLOSS_DOCS=OFF -DISOGLOSS_INSTALL=ON -DISOGLOSS_COMPILED=OFF
        -DCMAKE_INSTALL_INCLUDEDIR=include/versioned -DCMAKE_INSTALL_PREFIX=${WORK}/elsewhere -S ${SOURCE} -B ${WORK}/elsewhere-build)
    run(${CMAKE_COMMAND} --install ${WORK}/elsewhere-build)
    file(READ ${WORK}/elsewhere/share/cmake/isogloss/isogloss-targets.cmake targets)
    if(NOT EXISTS ${WORK}/elsewhere/include/versioned/isogloss/isogloss.hpp OR NOT targets MATCHES "_IMPORT_PREFIX}/include/versioned\"")
        message(FATAL_ERROR "Headers in include/versioned are not where the package looks for them:\n${targets}")
    endif()
endif()

if(HOW STREQUAL "compiled")
    # Built with OpenMP, the library needs it, and the failure says so.
    file(READ ${WORK}/prefix/share/cmake/isogloss/isogloss-compiled.cmake parts)
    if(parts MATCHES "OpenMP")
        must_fail_saying("OpenMP called with REQUIRED" ${configure} -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON
            -S ${SOURCE}/tests/consumer/compiled -B ${WORK}/without)
    endif()
    run(${configure} -DCMAKE_PREFIX_PATH=${WORK}/prefix -S ${SOURCE}/tests/consumer/compiled -B ${WORK}/build)
    run(${CMAKE_COMMAND} --build ${WORK}/build)
    run(${WORK}/build/consumer)
    # The program takes the core from the library: its own object only asks for it.
    file(GLOB_RECURSE object ${WORK}/build/main.cpp.o)
    execute_process(COMMAND nm -C ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    if(NOT symbols MATCHES " U isogloss::[a-z0-9_:]*Graph<float>::Graph" OR symbols MATCHES " [TWV] isogloss::[a-z0-9_:]*Graph<float>::Graph")
        message(FATAL_ERROR "consumer/compiled made the core itself:\n${symbols}")
    endif()
    # Nor does a program that reads and writes files contain the JSON library.
    run(${WORK}/build/consumer_io ${WORK})
    file(GLOB_RECURSE object ${WORK}/build/files.cpp.o)
    execute_process(COMMAND nm -C ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    if(NOT symbols MATCHES " U isogloss::[a-z0-9_:]*read_json" OR symbols MATCHES "nlohmann")
        message(FATAL_ERROR "consumer/compiled made the JSON itself:\n${symbols}")
    endif()
elseif(HOW STREQUAL "package")
    find_program(CMAKE_CPACK_COMMAND cpack REQUIRED)
    run(${CMAKE_CPACK_COMMAND} --config ${BUILD}/CPackConfig.cmake -B ${WORK}/package)
    file(GLOB package ${WORK}/package/libisogloss-dev_*_all.deb)
    find_program(DPKG_DEB dpkg-deb)
    if(NOT DPKG_DEB)
        message(FATAL_ERROR "dpkg-deb is missing: apt-get install dpkg")
    endif()
    run(${DPKG_DEB} -x ${package} ${WORK}/unpacked)
    file(GLOB_RECURSE expected RELATIVE ${WORK}/prefix ${WORK}/prefix/*)
    list(FILTER expected EXCLUDE REGEX "isogloss[-_]compiled|isogloss-mpi")
    file(GLOB_RECURSE found RELATIVE ${WORK}/unpacked/usr ${WORK}/unpacked/usr/*)
    if(NOT found STREQUAL expected)
        message(FATAL_ERROR "The package holds\n${found}\nexpected\n${expected}")
    endif()
    foreach(file IN LISTS found)
        run(${CMAKE_COMMAND} -E compare_files ${WORK}/prefix/${file} ${WORK}/unpacked/usr/${file})
    endforeach()
elseif(HOW STREQUAL "pkg-config")
    find_program(PKG_CONFIG pkg-config)
    if(NOT PKG_CONFIG)
        message(FATAL_ERROR "pkg-config is missing: apt-get install pkg-config")
    endif()
    set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/share/pkgconfig)
    execute_process(COMMAND ${PKG_CONFIG} --cflags --libs isogloss OUTPUT_VARIABLE flags
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(flags MATCHES "-fopenmp=")
        message(FATAL_ERROR "pkg-config gives an option that g++ does not know: ${flags}")
    endif()
    separate_arguments(flags UNIX_COMMAND "${flags}")
    # Without optimisation, in order to be quick, which the compiler says.
    execute_process(COMMAND ${COMPILER} -std=c++20 ${SOURCE}/tests/consumer/main.cpp -o ${WORK}/consumer ${flags}
        ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
    if(NOT said MATCHES "isogloss without optimisation runs")
        message(FATAL_ERROR "The compiler did not say that there is no optimisation: ${said}")
    endif()
    run(${WORK}/consumer)
    execute_process(COMMAND ${PKG_CONFIG} --cflags --libs isogloss-io OUTPUT_VARIABLE flags
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run(${COMPILER} -std=c++20 ${SOURCE}/tests/consumer/files.cpp -o ${WORK}/consumer_io ${flags})
    run(${WORK}/consumer_io ${WORK})
    run(${PKG_CONFIG} --exists --print-errors isogloss-lds)
    if(EXISTS ${WORK}/prefix/share/pkgconfig/isogloss-mpi.pc)
        execute_process(COMMAND ${PKG_CONFIG} --cflags --libs isogloss-mpi OUTPUT_VARIABLE flags
            OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        separate_arguments(flags UNIX_COMMAND "${flags}")
        run(${COMPILER} -std=c++20 ${SOURCE}/tests/consumer/ranks.cpp -o ${WORK}/consumer_mpi ${flags})
    endif()
else()
    run(${CMAKE_COMMAND} --build ${WORK}/build --parallel 2)
    run(${WORK}/build/consumer)
    run(${WORK}/build/consumer_io ${WORK})
endif()
