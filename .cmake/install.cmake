# Installation: headers, one set of CMake targets for the core and one for each part, pkg-config files, a Debian package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(isogloss_cmake_dir ${CMAKE_INSTALL_DATADIR}/cmake/isogloss)
set(isogloss_staging ${PROJECT_BINARY_DIR}/package)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
set(isogloss_docdir ${CMAKE_INSTALL_DOCDIR})
if(NOT PROJECT_IS_TOP_LEVEL)
    set(isogloss_docdir ${CMAKE_INSTALL_DATAROOTDIR}/doc/${PROJECT_NAME})  # the other may be of the project that contains this one
endif()
install(FILES LICENSE DESTINATION ${isogloss_docdir})

install(TARGETS isogloss isogloss_pch EXPORT isogloss-targets)
install(EXPORT isogloss-targets NAMESPACE isogloss:: DESTINATION ${isogloss_cmake_dir})
foreach(name IN LISTS isogloss_components)
    # The files of mpi name libraries of this machine: they are a component of their own, which the package leaves out.
    set(isogloss_part_${name} Unspecified)
    if(name STREQUAL "mpi")
        set(isogloss_part_${name} mpi)
    endif()
    install(TARGETS isogloss_${name} EXPORT isogloss-${name}-targets COMPONENT ${isogloss_part_${name}})
    install(EXPORT isogloss-${name}-targets NAMESPACE isogloss:: DESTINATION ${isogloss_cmake_dir} COMPONENT ${isogloss_part_${name}})
    file(WRITE ${isogloss_staging}/isogloss-${name}.cmake
        "${isogloss_${name}_dependency}"
        "include(\${CMAKE_CURRENT_LIST_DIR}/isogloss-${name}-targets.cmake)\n"
        "set(isogloss_${name}_FOUND TRUE)\n")
    install(FILES ${isogloss_staging}/isogloss-${name}.cmake DESTINATION ${isogloss_cmake_dir} COMPONENT ${isogloss_part_${name}})
endforeach()

if(TARGET isogloss_compiled)
    install(TARGETS ${isogloss_cores} EXPORT isogloss-compiled-targets COMPONENT compiled)
    install(EXPORT isogloss-compiled-targets NAMESPACE isogloss:: DESTINATION ${isogloss_cmake_dir} COMPONENT compiled)
    # The headers do without OpenMP, a library built with it does not.
    set(isogloss_compiled_dependency "")
    if(OpenMP_CXX_FOUND)
        set(isogloss_compiled_dependency "find_dependency(OpenMP COMPONENTS CXX)\n")
    endif()
    file(WRITE ${isogloss_staging}/isogloss-compiled.cmake
        "${isogloss_compiled_dependency}"
        "include(\${CMAKE_CURRENT_LIST_DIR}/isogloss-compiled-targets.cmake)\n"
        "set(isogloss_compiled_FOUND TRUE)\n")
    install(FILES ${isogloss_staging}/isogloss-compiled.cmake DESTINATION ${isogloss_cmake_dir} COMPONENT compiled)
endif()

configure_package_config_file(.cmake/isogloss-config.cmake.in ${isogloss_staging}/isogloss-config.cmake
    INSTALL_DESTINATION ${isogloss_cmake_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${isogloss_staging}/isogloss-config-version.cmake
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${isogloss_staging}/isogloss-config.cmake ${isogloss_staging}/isogloss-config-version.cmake
    .cmake/instruction_sets.cmake .cmake/instruction_sets.cpp.in
    DESTINATION ${isogloss_cmake_dir})

# pkg-config knows no targets: what they say, as flags.
set(isogloss_pc_cflags " -ffp-contract=off")
foreach(definition IN LISTS isogloss_definitions)
    string(APPEND isogloss_pc_cflags " -D${definition}")
endforeach()
set(isogloss_pc_requires xtensor)
if(ISOGLOSS_USE_XSIMD)
    string(APPEND isogloss_pc_requires ", xsimd")
endif()
set(isogloss_pc_libs "")
foreach(library IN LISTS BLAS_LIBRARIES LAPACK_LIBRARIES)
    if(IS_ABSOLUTE "${library}")
        get_filename_component(directory ${library} DIRECTORY)
        get_filename_component(library ${library} NAME_WE)
        string(REGEX REPLACE "^lib" "-l" library ${library})
        if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
            list(APPEND isogloss_pc_libs -L${directory})
        endif()
    endif()
    list(APPEND isogloss_pc_libs ${library})
endforeach()
if(OpenMP_CXX_FOUND)
    set(isogloss_pc_openmp ${OpenMP_CXX_FLAGS})
    if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
        set(isogloss_pc_openmp -fopenmp)  # of both; clang++'s own -fopenmp=libomp is an error to g++
    endif()
    string(APPEND isogloss_pc_cflags " ${isogloss_pc_openmp}")
    list(APPEND isogloss_pc_libs ${isogloss_pc_openmp})
endif()
list(APPEND isogloss_pc_libs -pthread)
list(REMOVE_DUPLICATES isogloss_pc_libs)
list(JOIN isogloss_pc_libs " " isogloss_pc_libs)
if(TARGET xtensor-blas)
    get_target_property(isogloss_pc_blas xtensor-blas INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT isogloss_pc_blas IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
        string(APPEND isogloss_pc_cflags " -I${isogloss_pc_blas}")
    endif()
endif()
set(isogloss_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(isogloss_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(.cmake/isogloss.pc.in ${isogloss_staging}/isogloss.pc @ONLY)
install(FILES ${isogloss_staging}/isogloss.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
foreach(name IN LISTS isogloss_components)
    file(WRITE ${isogloss_staging}/isogloss-${name}.pc
        "Name: isogloss-${name}\nDescription: ${PROJECT_DESCRIPTION}, component ${name}\nVersion: ${PROJECT_VERSION}\n"
        "Requires: isogloss${isogloss_${name}_requires}\n${isogloss_${name}_flags}")
    install(FILES ${isogloss_staging}/isogloss-${name}.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT ${isogloss_part_${name}})
endforeach()

# What is packaged is the project alone: where it is part of another, packages are that one's business.
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()

# One package holds the headers and what finds them, another the compiled core if it is not tuned for the machine that built it.
# mpi stays out.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL Unspecified)
if(TARGET isogloss_compiled AND ISOGLOSS_INSTRUCTION_SETS)
    list(APPEND CPACK_COMPONENTS_ALL compiled)
    set(CPACK_DEBIAN_COMPILED_PACKAGE_NAME libisogloss-compiled-dev)
    set(CPACK_DEBIAN_COMPILED_PACKAGE_ARCHITECTURE amd64)
    set(CPACK_DEBIAN_COMPILED_PACKAGE_DEPENDS "libisogloss-dev (= ${PROJECT_VERSION})")
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VENDOR "${PROJECT_NAME}")
set(CPACK_PACKAGE_CONTACT "The isogloss authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME libisogloss-dev)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libxtensor-dev (>= 0.24), libxsimd-dev")
if(NOT ISOGLOSS_BLAS STREQUAL "none")
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS
        ", libxtensor-blas-dev, libopenblas-openmp-dev | libopenblas-pthread-dev | libopenblas-serial-dev")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS nlohmann-json3-dev)
include(CPack)
