# run(FOLDER COMMAND...): runs it there; `output` is what it printed. Ends the script with that if it fails.
function(run folder)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${folder} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${text}${errors}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()
