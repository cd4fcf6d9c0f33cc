# The script of the report's page: page/src and the plotting library from npm as one file, made when its sources change.
# Without npm, or if it cannot fetch the packages of page/package-lock.json, the script is empty, and `report` says so.
option(EPOCAST_REPORT_SCRIPT "Bundle the interactive figures of reports if npm is there" ON)
find_program(NPM_EXECUTABLE npm)
find_program(NODE_EXECUTABLE node)

set(page ${CMAKE_CURRENT_SOURCE_DIR}/report/page)
set(script ${CMAKE_CURRENT_BINARY_DIR}/report/script.js)
file(GLOB page_sources CONFIGURE_DEPENDS ${page}/src/*.js)
set(bundling "")
# Sanitizers look at C++; the page is the same.
if(EPOCAST_REPORT_SCRIPT AND NPM_EXECUTABLE AND NODE_EXECUTABLE AND NOT EPOCAST_SANITIZE)
  set(bundling -D NPM=${NPM_EXECUTABLE} -D NODE=${NODE_EXECUTABLE})
endif()
add_custom_command(
  OUTPUT ${script}
  COMMAND ${CMAKE_COMMAND} ${bundling} -D PAGE=${page} -D SCRIPT=${script} -P ${page}/bundle.cmake
  DEPENDS ${page_sources} ${page}/package.json ${page}/package-lock.json ${page}/licences.txt ${page}/bundle.cmake
  COMMENT "Bundling the script of reports"
  VERBATIM)

# The assembler includes these files, which no compiler tells the build system.
set_source_files_properties(report/page_assets.cpp PROPERTIES
  COMPILE_DEFINITIONS "EPOCAST_REPORT_PAGE=\"${page}\";EPOCAST_REPORT_SCRIPT=\"${script}\""
  OBJECT_DEPENDS "${script};${page}/index.html;${page}/style.css"
  SKIP_UNITY_BUILD_INCLUSION ON)
