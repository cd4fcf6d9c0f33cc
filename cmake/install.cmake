# cmake --install: headers, data, and what find_package(epocast) needs. Libraries and program are installed where they are
# defined.
include(CMakePackageConfigHelpers)

set(EPOCAST_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/epocast)
set(EPOCAST_DATA_DIR ${CMAKE_INSTALL_DATADIR}/epocast)

install(DIRECTORY sim platforms workloads costmodels strategies learning experiments
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/epocast
        FILES_MATCHING PATTERN "*.hpp"
        PATTERN clusters EXCLUDE PATTERN stacks EXCLUDE PATTERN models EXCLUDE PATTERN timings EXCLUDE PATTERN calibrations EXCLUDE PATTERN measurements EXCLUDE
        PATTERN studies EXCLUDE PATTERN page EXCLUDE)

# The same layout as in the source tree: see sim/data_directory.hpp.
install(DIRECTORY platforms/ DESTINATION ${EPOCAST_DATA_DIR}/platforms FILES_MATCHING PATTERN "*.xml"
        PATTERN "*.yaml")
foreach(folder workloads/models costmodels/timings costmodels/calibrations costmodels/measurements costmodels/stacks experiments/studies experiments/reproduce)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder}/ DESTINATION ${EPOCAST_DATA_DIR}/${folder}
            FILES_MATCHING PATTERN "*.yaml" PATTERN "*.csv" PATTERN "*.md")
  endif()
endforeach()

install(PROGRAMS workloads/microbench/pytorch_kernels.py DESTINATION ${EPOCAST_DATA_DIR}/workloads/microbench)
install(FILES workloads/microbench/pytorch_functions.py DESTINATION ${EPOCAST_DATA_DIR}/workloads/microbench)

install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT epocastTargets NAMESPACE epocast:: DESTINATION ${EPOCAST_CMAKE_DIR})
configure_package_config_file(cmake/epocastConfig.cmake.in ${PROJECT_BINARY_DIR}/epocastConfig.cmake
                              INSTALL_DESTINATION ${EPOCAST_CMAKE_DIR} PATH_VARS EPOCAST_DATA_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/epocastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/epocastConfig.cmake ${PROJECT_BINARY_DIR}/epocastConfigVersion.cmake
        DESTINATION ${EPOCAST_CMAKE_DIR})
