# Writes SCRIPT from PAGE/src with the packages of PAGE/package-lock.json, by NPM and NODE; empty if these are not given or
# fail. Called when the build finds a source changed.
cmake_minimum_required(VERSION 3.22)

function(without_figures reason)
  message("Reports will have no interactive figures: ${reason}")
  file(WRITE ${SCRIPT} "")
endfunction()

if(NOT NPM OR NOT NODE)
  without_figures("npm and node are not there, or were not asked for")
  return()
endif()

get_filename_component(work ${SCRIPT} DIRECTORY)
file(MAKE_DIRECTORY ${work})
# Packages are fetched when their list changes, not when the page does.
file(SHA256 ${PAGE}/package-lock.json wanted)
set(stamp ${work}/node_modules/.epocast)
set(present "")
if(EXISTS ${stamp})
  file(READ ${stamp} present)
endif()
if(NOT present STREQUAL wanted)
  file(COPY ${PAGE}/package.json ${PAGE}/package-lock.json DESTINATION ${work})
  execute_process(
    COMMAND ${NPM} ci --omit=dev --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1 --fetch-timeout=20000
    WORKING_DIRECTORY ${work} TIMEOUT 120 RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    without_figures("npm could not fetch their library:\n${said}")
    return()
  endif()
  file(WRITE ${stamp} ${wanted})
endif()

# Names are looked up from where the sources are, packages from where they were installed.
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${work}/node_modules
          ${NODE} ${work}/node_modules/esbuild/bin/esbuild ${PAGE}/src/main.js --bundle --minify --format=iife
          --target=es2020 --charset=utf8 --legal-comments=none --log-level=warning --outfile=${SCRIPT}.new
  TIMEOUT 120 RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  without_figures("esbuild could not bundle them:\n${said}")
  return()
endif()
# The licences of what is in it go with it.
file(READ ${PAGE}/licences.txt licences)
file(READ ${SCRIPT}.new bundled)
file(WRITE ${SCRIPT} "${licences}${bundled}")
file(REMOVE ${SCRIPT}.new)
