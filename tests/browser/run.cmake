# cmake -D BUILD_DIR=... -D EPOCAST=... -D NPM=... -D NODE=... -D CHROMIUM=... -P run.cmake
# Makes pages with `epocast report` and reads them in a browser: see report_test.mjs.
cmake_minimum_required(VERSION 3.22)
set(work ${BUILD_DIR}/browser)
set(root ${CMAKE_CURRENT_LIST_DIR}/../..)
set(studies ${root}/experiments/studies)
set(pages ${work}/pages)

include(${CMAKE_CURRENT_LIST_DIR}/../support/run.cmake)

file(REMOVE_RECURSE ${pages})
file(MAKE_DIRECTORY ${pages})
file(COPY ${root}/experiments/report/page/package.json ${root}/experiments/report/page/package-lock.json
          ${CMAKE_CURRENT_LIST_DIR}/report_test.mjs DESTINATION ${work})
run(${work} ${NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline)

run(${pages} ${EPOCAST} sweep ${studies}/buyers_question.yaml --store buyers.sqlite)
run(${pages} ${EPOCAST} report buyers.sqlite --minimise cost --under 5d --write buyers.html)
run(${pages} ${EPOCAST} run ${studies}/vgg16_skylake.yaml --trace vgg16.json --details details.json --format csv)
file(WRITE ${pages}/vgg16.csv "${output}")
run(${pages} ${EPOCAST} trace ${studies}/vgg16_skylake.yaml --scenario 1 --memory)
file(WRITE ${pages}/memory.csv "${output}")
run(${pages} ${EPOCAST} report vgg16.csv vgg16-1.json vgg16-2.json details.json memory.csv --write vgg16.html)
file(WRITE ${pages}/thousand.yaml "study: thousand\nplatform: skylake_10gbe\nmodel: mlp_mnist\nsweep:\n  workers: [1, 2, 4, 8]\n"
  "  batch.per_worker: {from: 1, to: 125, step: 1}\n  strategy: [data_parallel, parameter_server]\n")
run(${pages} ${EPOCAST} sweep thousand.yaml)
run(${pages} ${EPOCAST} report thousand.sqlite --write thousand.html)
execute_process(COMMAND ${NODE} ${work}/report_test.mjs ${CHROMIUM} ${pages} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the browser found mistakes")
endif()
