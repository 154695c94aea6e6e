# SPDX-License-Identifier: Apache-2.0
# Arithmetic folders are compiled once per instruction set and number pair, under suffixed names
# (base/variant.h): base, v3 (AVX2 + FMA), v4 (AVX-512); carrier and accumulator
# f32/f32, f32/f64, f64/f64. One table per pair is chosen per process; a test proves that the three
# instruction sets give the same bits. Optimizers have no sums between elements, hence no pair f32/f64.
# -O3 in every optimised build, but for the portable set (below): gcc's -O2 does not vectorise loops
# of unknown length. (With the cost model of -O3 it does, and compiles in 134 s what takes 174; but
# trainings with AVX2 take 8 % longer.)
# Sanitized builds are compiled and run once: at -O1 both together take half the time.
set(TWINSTEP_OPTIMISED $<$<CONFIG:Release,RelWithDebInfo>:-O3>)
if(TWINSTEP_SANITIZE OR TWINSTEP_FUZZ)
  set(TWINSTEP_OPTIMISED "")
endif()
# Of kernels a debugger shows little but names of functions, which every build has. Preset strict, which
# is built to be tested, leaves their debugging information out: gcc writes some of these objects in four
# fifths of the time.
set(TWINSTEP_KERNEL_DEBUG "" CACHE STRING "options for the debugging information of kernels")
# The portable set, for machines without AVX2, is compiled at -O2 with that cost model: gcc 12 takes
# two thirds of the time, and trainings with numerics.isa: base take as long as at -O3 (33.5 s and
# 34.8 s of one, of hidden size 128).
set(TWINSTEP_PORTABLE)
if(NOT TWINSTEP_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(TWINSTEP_PORTABLE $<$<CONFIG:Release,RelWithDebInfo>:-O2> -fvect-cost-model=dynamic)
endif()
# Preset strict, which is built to be tested, compiles the other sets in that way, too: their loops are
# vectorised by the same pass at the same cost model, and gcc takes 21 s of processor time for those of
# f32/f32 that take 34 at -O3. What is shipped has them at -O3, which the nightly run tests.
option(TWINSTEP_KERNELS_AS_PORTABLE "compile kernels of all instruction sets as the portable ones" OFF)
set(TWINSTEP_KERNEL_LEVEL)
if(TWINSTEP_KERNELS_AS_PORTABLE)
  set(TWINSTEP_KERNEL_LEVEL ${TWINSTEP_PORTABLE})
endif()
# A loop over an optimizer's elements vectorises when the compiler has made one for each case of the
# step's numbers (decoupled, amsgrad, which side of lerp). gcc stops at 50 instructions, and bf16's
# roundings make it 200: AdamW with bf16 slots took 8.4 ns an element and takes 1.2
# (docs/measurements/bf16.md).
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/optim/cpu/ranges.c
                              PROPERTIES COMPILE_OPTIONS --param=max-unswitch-insns=200)
endif()
# A build that only tests, where it is made, can do with one set of objects (base/isa_objects.h):
# under the name of the portable ones, those of the machine's widest set, or of AVX2 with a sanitizer.
option(TWINSTEP_ONE_ISA "one instruction set of this machine alone" OFF)
set(TWINSTEP_ISAS base v3 v4)
set(TWINSTEP_ISA_base ${TWINSTEP_PORTABLE})
set(TWINSTEP_ISA_v3 -march=x86-64-v3)
set(TWINSTEP_ISA_v4 -march=x86-64-v4 -mprefer-vector-width=512)
set(TWINSTEP_CODE_base base) # which of the vector code in the sources
set(TWINSTEP_CODE_v3 v3)
set(TWINSTEP_CODE_v4 v4)
if(TWINSTEP_SANITIZE OR TWINSTEP_ONE_ISA OR TWINSTEP_FUZZ)
  check_c_source_runs(
    "int main(void) {
       return !(__builtin_cpu_supports(\"avx512f\") && __builtin_cpu_supports(\"avx512vl\") &&
                __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512dq\") &&
                __builtin_cpu_supports(\"avx512cd\"));
     }"
    TWINSTEP_MACHINE_IS_V4)
  if(TWINSTEP_MACHINE_IS_V4 AND NOT TWINSTEP_SANITIZE)
    set(TWINSTEP_CODE_base v4)
  elseif(TWINSTEP_MACHINE_IS_V3)
    set(TWINSTEP_CODE_base v3)
  endif()
  set(TWINSTEP_ISA_base ${TWINSTEP_ISA_${TWINSTEP_CODE_base}})
  set(TWINSTEP_ISAS base)
  add_compile_definitions(TWINSTEP_ONE_ISA=1)
endif()

# With the address sanitizer gcc takes 2.4 times as long for these objects. By default it looks at one
# number pair of the three, whose sources are those of the others; nightly at all.
option(TWINSTEP_SANITIZE_PAIRS "sanitize the arithmetic of every number pair" OFF)

# twinstep_arithmetic(LIBRARY FOLDER PAIR ...)
function(twinstep_arithmetic library folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
  foreach(isa ${TWINSTEP_ISAS})
    foreach(pair ${ARGN})
      string(REPLACE "_" ";" types ${pair})
      list(GET types 0 carrier)
      list(GET types 1 accumulator)
      set(variant ${pair}_${isa})
      add_library(${library}_${variant} OBJECT ${sources})
      target_link_libraries(${library}_${variant} PRIVATE twinstep_flags OpenMP::OpenMP_C)
      target_compile_options(
        ${library}_${variant} PRIVATE ${TWINSTEP_OPTIMISED} ${TWINSTEP_ISA_${isa}}
                                      ${TWINSTEP_KERNEL_LEVEL} ${TWINSTEP_KERNEL_DEBUG})
      if(TWINSTEP_SANITIZE MATCHES address AND NOT pair STREQUAL f32_f32
         AND NOT TWINSTEP_SANITIZE_PAIRS)
        set_target_properties(${library}_${variant} PROPERTIES TWINSTEP_UNSANITIZED ON)
      endif()
      if(TWINSTEP_FUZZ) # arithmetic reads no file, so its branches are no news; compiled in seconds
        target_compile_options(${library}_${variant} PRIVATE -O0 -g0)
        set_target_properties(${library}_${variant} PROPERTIES TWINSTEP_UNSANITIZED ON)
      endif()
      target_compile_definitions(
        ${library}_${variant}
        PRIVATE TWINSTEP_VARIANT=${variant} TWINSTEP_CARRIER_${carrier}=1
                TWINSTEP_ACCUMULATOR_${accumulator}=1 TWINSTEP_ISA_${TWINSTEP_CODE_${isa}}=1)
      target_sources(twinstep_${library} PRIVATE $<TARGET_OBJECTS:${library}_${variant}>)
    endforeach()
  endforeach()
endfunction()
