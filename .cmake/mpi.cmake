# The component mpi: asked for by name, where MPI has to be there, or offered where it is (ISOGLOSS_MPI).
# Only what needs several processes is linked with it: isogloss_components_alone are the others.
set(isogloss_components_alone ${isogloss_components})
if(ISOGLOSS_MPI OR "mpi" IN_LIST ISOGLOSS_COMPONENTS)
    set(MPI_CXX_SKIP_MPICXX TRUE)
    find_package(MPI QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND)
        list(APPEND ISOGLOSS_COMPONENTS mpi)
    elseif("mpi" IN_LIST ISOGLOSS_COMPONENTS)
        message(FATAL_ERROR "isogloss: MPI was not found, which the component mpi needs.\n"
            "On Debian and Ubuntu: apt-get install libopenmpi-dev openmpi-bin (or libmpich-dev mpich)\n"
            "Elsewhere: install it and pass -DMPI_CXX_COMPILER=<its compiler wrapper>.")
    else()
        message(STATUS "isogloss: no MPI was found, so language_model trains in one process alone "
            "(apt-get install libopenmpi-dev openmpi-bin)")
    endif()
endif()
isogloss_component(mpi)
if(TARGET isogloss_mpi)
    target_link_libraries(isogloss_mpi INTERFACE MPI::MPI_CXX)
    list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE isogloss_mpi_cflags)
    list(JOIN isogloss_mpi_cflags " " isogloss_mpi_cflags)
    list(JOIN MPI_CXX_LIBRARIES " " isogloss_mpi_libs)
    set(isogloss_mpi_flags "Cflags: ${isogloss_mpi_cflags}\nLibs: ${isogloss_mpi_libs}\n")  # pkg-config's names of MPI differ
    set(isogloss_mpi_dependency "set(MPI_CXX_SKIP_MPICXX TRUE)\nfind_dependency(MPI COMPONENTS CXX)\n")
endif()
