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
    target_compile_options(${part} PRIVATE ${TWINSTEP_OPTIMISED} ${ARGN})
    target_compile_definitions(
      ${part} PRIVATE TWINSTEP_VARIANT=${carrier}_${accumulator}_${word}
                      TWINSTEP_CARRIER_${carrier}=1 TWINSTEP_ACCUMULATOR_${accumulator}=1)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${part}>)
  endforeach()
endfunction()

set_source_files_properties(${CMAKE_SOURCE_DIR}/kernels/cuda/ops.cu PROPERTIES LANGUAGE C)
twinstep_host_kernels(twinstep_shim shim)
