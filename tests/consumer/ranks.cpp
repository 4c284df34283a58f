// What a program outside the project does with ranks: it asks how many there are. Compiled and linked, not started.
#include <isogloss/mpi.hpp>

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    const bool alone = isogloss::mpi::Communicator(MPI_COMM_WORLD).size() == 1;
    MPI_Finalize();
    return alone ? 0 : 1;
}
