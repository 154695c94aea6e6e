# SPDX-License-Identifier: Apache-2.0
# twinstep_backend_ptx.so, for tests: kernels are what nvcc makes of kernels/cuda/, its PTX written
# as C (tests/kernels/ptx_host.py); their host's side and what runs them is the shim's. Kernels of
# tensor_attention.cu, whose instructions are a tensor core's, stay the shim's, and cuBLAS its twin.
# Made where nvcc is, when asked for (tests ask: build_backend_ptx): backend_ptx, of all kernels;
# backend_ptx_small, whose ops are the shim's and whose other kernels nvcc's; backend_ptx_planted, the
# same with faults in its PTX, for tests to find.
find_program(PYTHON3 python3 REQUIRED)
file(GLOB ptx_inputs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/*.h
     ${CMAKE_SOURCE_DIR}/kernels/*.h ${CMAKE_SOURCE_DIR}/base/*.h ${CMAKE_SOURCE_DIR}/base/*.inc
     ${CMAKE_SOURCE_DIR}/determinism/*.h)
set(ptx_isa)
if(TWINSTEP_MACHINE_IS_V3)
  set(ptx_isa ${TWINSTEP_ISA_v3})
endif()

# Objects of what stands in a file that PTX was written to, and of its host's side.
function(twinstep_ptx_objects part source pair made)
  add_library(${part} OBJECT EXCLUDE_FROM_ALL ${made})
  target_compile_options(${part} PRIVATE -O1 -g0 -w)
  if(NOT TARGET ptx_${source}_${pair}_host)
    add_library(ptx_${source}_${pair}_host OBJECT EXCLUDE_FROM_ALL
                ${CMAKE_SOURCE_DIR}/kernels/cuda/${source}.cu)
    target_compile_options(ptx_${source}_${pair}_host
                           PRIVATE -include ${CMAKE_SOURCE_DIR}/tests/kernels/ptx_host.h)
    twinstep_ptx_host(ptx_${source}_${pair}_host ${pair})
    twinstep_ptx_compile(ptx_${source}_${pair}_host)
  endif()
  twinstep_ptx_compile(${part})
endfunction()

function(twinstep_ptx_compile name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PRIVATE twinstep_flags)
  target_compile_options(${name} PRIVATE -fvisibility=hidden ${ptx_isa})
endfunction()

# twinstep_ptx_part(SOURCE CARRIER ACCUMULATOR): objects ptx_SOURCE_PAIR, and ptx_SOURCE_PAIR_host.
function(twinstep_ptx_part source carrier accumulator)
  set(pair ${carrier}_${accumulator})
  set(ptx ${CMAKE_BINARY_DIR}/ptx/${source}_${pair}.ptx)
  set(types -DTWINSTEP_CARRIER_${carrier}=1 -DTWINSTEP_ACCUMULATOR_${accumulator}=1)
  add_custom_command(
    OUTPUT ${ptx}
    COMMAND ${NVCC} -ptx -arch=compute_90 -I${CMAKE_SOURCE_DIR} ${TWINSTEP_NVCC_FLAGS} ${types}
            -DTWINSTEP_VARIANT=${pair}_cuda ${CMAKE_SOURCE_DIR}/kernels/cuda/${source}.cu -o ${ptx}
    DEPENDS ${ptx_inputs}
    COMMENT "nvcc: PTX of ${source}, ${pair}"
    VERBATIM)
  twinstep_ptx_write(${source}_${pair} ${source}_${pair} ${pair})
  twinstep_ptx_objects(ptx_${source}_${pair} ${source} ${pair}
                       ${CMAKE_BINARY_DIR}/ptx/${source}_${pair}.c)
endfunction()

# twinstep_ptx_write(MADE PART PAIR WORDS ...): MADE.c of PART.ptx, with WORDS for the translator.
function(twinstep_ptx_write made part pair)
  set(out ${CMAKE_BINARY_DIR}/ptx/${made}.c)
  set(writer ${CMAKE_SOURCE_DIR}/tests/kernels/ptx_host.py)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${PYTHON3} ${writer} --variant ${pair}_ptx --out ${out} ${ARGN}
            ${CMAKE_BINARY_DIR}/ptx/${part}.ptx
    DEPENDS ${CMAKE_BINARY_DIR}/ptx/${part}.ptx ${writer}
    COMMENT "PTX of ${part} as C: ${made}"
    VERBATIM)
endfunction()

function(twinstep_ptx_host name pair)
  string(REPLACE "_" ";" types ${pair})
  list(GET types 0 carrier)
  list(GET types 1 accumulator)
  target_compile_definitions(
    ${name} PRIVATE TWINSTEP_VARIANT=${pair}_ptx TWINSTEP_CARRIER_${carrier}=1
                    TWINSTEP_ACCUMULATOR_${accumulator}=1 LINEAR_WIDE_TILES=2u)
endfunction()

set(ptx_small leaves_f32_f32 moves_f32_f32 pairs_f32_f32 reads_f32_f32 squares_f32_f32
              step_f32_f32 step_f64_f64)
set(ptx_ops ops_f32_f32 ops_f32_f64 ops_f64_f64)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/ptx)
foreach(part ${ptx_small} ${ptx_ops})
  string(REPLACE "_" ";" words ${part})
  twinstep_ptx_part(${words})
endforeach()

# twinstep_ptx_module(NAME PARTS ...): backend_NAME
function(twinstep_ptx_module name)
  twinstep_shim_module(${name} ptx)
  set_target_properties(backend_${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  foreach(part ${ARGN})
    target_sources(backend_${name} PRIVATE $<TARGET_OBJECTS:ptx_${part}>
                                           $<TARGET_OBJECTS:ptx_${part}_host>)
  endforeach()
endfunction()

twinstep_ptx_module(ptx ${ptx_small} ${ptx_ops})
add_library(ptx_tensor OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/kernels/cuda/tensor_attention.cu)
set_target_properties(ptx_tensor PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(ptx_tensor PRIVATE twinstep_flags)
target_compile_options(ptx_tensor PRIVATE ${TWINSTEP_OPTIMISED} -fvisibility=hidden ${ptx_isa})
twinstep_ptx_host(ptx_tensor f32_f32)
target_sources(backend_ptx PRIVATE $<TARGET_OBJECTS:ptx_tensor>)

twinstep_ptx_module(ptx_small ${ptx_small})

# twinstep_ptx_plant(PART KERNEL OLD NEW): the first OLD in the kernel's PTX becomes NEW.
function(twinstep_ptx_plant part kernel old new)
  string(REPLACE "_" ";" words ${part})
  list(POP_FRONT words source carrier accumulator)
  set(pair ${carrier}_${accumulator})
  twinstep_ptx_write(planted_${part} ${part} ${pair} --plant ${kernel} ${old} ${new})
  twinstep_ptx_objects(ptx_planted_${part} ${source} ${pair}
                       ${CMAKE_BINARY_DIR}/ptx/planted_${part}.c)
endfunction()

twinstep_ptx_plant(leaves_f32_f32 leaves_f32_kernel setp.gt.u32 setp.ge.u32)
twinstep_ptx_plant(moves_f32_f32 moves_kernel sub.rn.f64 add.rn.f64)
twinstep_ptx_plant(pairs_f32_f32 pairs_kernel sub.rn.f64 add.rn.f64)
twinstep_ptx_plant(reads_f32_f32 reads_kernel sub.rn.f64 add.rn.f64)
twinstep_ptx_plant(squares_f32_f32 squares_kernel setp.le.u64 setp.lt.u64)
twinstep_ptx_plant(step_f32_f32 step_adam_apex_kernel sub.rn.f32 add.rn.f32)
twinstep_ptx_module(ptx_planted step_f64_f64)
foreach(part leaves_f32_f32 moves_f32_f32 pairs_f32_f32 reads_f32_f32 squares_f32_f32 step_f32_f32)
  target_sources(backend_ptx_planted PRIVATE $<TARGET_OBJECTS:ptx_planted_${part}>
                                             $<TARGET_OBJECTS:ptx_${part}_host>)
endforeach()

# Their ops are the shim's.
foreach(name backend_ptx_small backend_ptx_planted)
  foreach(pair f32_f32 f32_f64 f64_f64)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:kernels_shim_${pair}>)
    target_link_options(${name} PRIVATE -Wl,--defsym=op_table_${pair}_ptx=op_table_${pair}_shim)
  endforeach()
endforeach()
