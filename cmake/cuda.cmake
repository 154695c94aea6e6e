# SPDX-License-Identifier: Apache-2.0
# The kernels of kernels/cuda/ twice: for a device, as a module (TWINSTEP_CUDA, where nvcc is), and
# always for the host, run by the shim, which tests link and load. The program itself has neither.

# twinstep_host_kernels(NAME WORD ...): ops.cu of each number pair as C, and the shim.
function(twinstep_host_kernels name word)
  add_library(${name} STATIC ${CMAKE_SOURCE_DIR}/kernels/cuda/shim.c)
  target_link_libraries(${name} PUBLIC twinstep_base)
  target_compile_options(${name} PRIVATE ${TWINSTEP_OPTIMISED})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(pair "f32;f32" "f32;f64" "f64;f64")
    list(GET pair 0 carrier)
    list(GET pair 1 accumulator)
    set(part ${name}_${carrier}_${accumulator})
    add_library(${part} OBJECT ${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu)
    set_target_properties(${part} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${part} PRIVATE twinstep_flags)
    target_compile_options(${part} PRIVATE ${TWINSTEP_OPTIMISED} -fvisibility=hidden ${ARGN})
    target_compile_definitions(
      ${part} PRIVATE TWINSTEP_VARIANT=${carrier}_${accumulator}_${word}
                      TWINSTEP_CARRIER_${carrier}=1 TWINSTEP_ACCUMULATOR_${accumulator}=1)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${part}>)
  endforeach()
endfunction()

set_source_files_properties(${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu PROPERTIES LANGUAGE C)
twinstep_host_kernels(twinstep_shim shim)

# twinstep_backend_shim.so, what a module with a device would be, for tests. It links nothing of
# ours: what it needs of base/ is compiled into it and fails through the module's host.
if(BUILD_TESTING)
  set(backends ${CMAKE_BINARY_DIR}/backends)
  add_library(backend_shim MODULE kernels/cuda/shim_module.c kernels/cuda/shim.c base/arena.c)
  foreach(pair f32_f32 f32_f64 f64_f64)
    target_sources(backend_shim PRIVATE $<TARGET_OBJECTS:twinstep_shim_${pair}>)
  endforeach()
  set_target_properties(backend_shim PROPERTIES PREFIX "" OUTPUT_NAME twinstep_backend_shim
                                                SUFFIX .so LIBRARY_OUTPUT_DIRECTORY ${backends})
  target_link_libraries(backend_shim PRIVATE twinstep_flags)
  target_compile_options(
    backend_shim PRIVATE ${TWINSTEP_OPTIMISED} -fno-tree-slp-vectorize -fvisibility=hidden
                         -Wno-unused-function -include ${CMAKE_SOURCE_DIR}/base/module_kit.h)
endif()

# The module for devices. nvcc is called as a program: CMake's CUDA language would ask for a device's
# architecture, and the program needs none of it.
set(TWINSTEP_CUDA OFF CACHE BOOL "build twinstep_cuda.so; needs nvcc of CUDA 12 or 13")
find_program(NVCC nvcc HINTS ENV CUDA_PATH PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
set(TWINSTEP_NVCC_FLAGS -std=c++20 --fmad=false --prec-div=true --prec-sqrt=true --ftz=false)
if(TWINSTEP_CUDA AND NOT NVCC)
  message(FATAL_ERROR "TWINSTEP_CUDA: expected nvcc on PATH, in CUDA_PATH/bin or in "
                      "/usr/local/cuda/bin, found none")
endif()
if(TWINSTEP_CUDA)
  set(device -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode
             arch=compute_90,code=compute_90)
  set(host -O3 -I${CMAKE_SOURCE_DIR} -Xcompiler
           -fPIC,-ffp-contract=off,-fno-tree-slp-vectorize,-fvisibility=hidden,-Wno-unused-function)
  set(headers ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/*.h
              ${CMAKE_SOURCE_DIR}/kernels/*.h ${CMAKE_SOURCE_DIR}/base/*.h
              ${CMAKE_SOURCE_DIR}/base/*.inc)
  file(GLOB inputs CONFIGURE_DEPENDS ${headers})
  set(objects)
  foreach(pair "f32;f32" "f32;f64" "f64;f64" "module;_")
    list(GET pair 0 carrier)
    list(GET pair 1 accumulator)
    set(source ${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu)
    set(defined -DTWINSTEP_VARIANT=${carrier}_${accumulator}_cuda -DTWINSTEP_CARRIER_${carrier}=1
                -DTWINSTEP_ACCUMULATOR_${accumulator}=1)
    if(carrier STREQUAL "module")
      set(source ${CMAKE_SOURCE_DIR}/kernels/cuda/module.cu)
      set(defined)
    endif()
    set(object ${CMAKE_BINARY_DIR}/cuda_${carrier}_${accumulator}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${NVCC} -c ${TWINSTEP_NVCC_FLAGS} ${device} ${host} ${defined} ${source} -o ${object}
      DEPENDS ${inputs}
      COMMENT "nvcc ${carrier} ${accumulator}"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(module ${CMAKE_BINARY_DIR}/twinstep_cuda.so)
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${NVCC} -shared -cudart static ${objects} -o ${module}
    DEPENDS ${objects}
    COMMENT "twinstep_cuda.so"
    VERBATIM)
  add_custom_target(twinstep_cuda ALL DEPENDS ${module})
endif()
