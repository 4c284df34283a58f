# isogloss_check(TARGET FOLDER ARGUMENTS...): the target check runs this program in FOLDER, with one thread, whenever it is
# newer than its last success, and shows what it prints if it fails.
add_custom_target(check)
function(isogloss_check target folder)
    set(passed ${CMAKE_CURRENT_BINARY_DIR}/passed/${target})
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/passed ${folder})
    add_custom_command(OUTPUT ${passed}
        COMMAND sh -c "\"$@\" >$0.log 2>&1 || { cat $0.log; exit 1; }" ${passed}
            ${CMAKE_COMMAND} -E env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
            ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}> ${ARGN}
        COMMAND ${CMAKE_COMMAND} -E touch ${passed}
        DEPENDS ${target} WORKING_DIRECTORY ${folder} COMMENT "Running ${target}" VERBATIM)
    add_custom_target(check_${target} DEPENDS ${passed})
    add_dependencies(check check_${target})
endfunction()
