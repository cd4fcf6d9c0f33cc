# cmake -D BUILD_DIR=... -D CONFIG=... -D GENERATOR=... -D CXX=... -P run.cmake
# Installs the build into a folder of its own, moves that folder (an installation has to be relocatable), builds the
# consumer against it and runs it.
set(work ${BUILD_DIR}/consumer)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --config ${CONFIG} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${GENERATOR} -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build --config ${CONFIG})
run(${work}/build/consumer)
if(NOT output MATCHES "skylake_opa: [1-9][0-9]* devices")
  message(FATAL_ERROR "unexpected output of the consumer: ${output}")
endif()
message(STATUS "${output}")

if(EXISTS ${work}/prefix/bin/epocast)
  run(${CMAKE_COMMAND} -E env --unset=EPOCAST_DATA ${work}/prefix/bin/epocast list platforms)
  if(NOT output MATCHES "skylake_opa")
    message(FATAL_ERROR "the installed program does not find its data: ${output}")
  endif()
endif()
