# SPDX-License-Identifier: Apache-2.0
# Arithmetic folders are compiled once per instruction set and number pair, under suffixed names
# (base/variant.h): base, v3 (AVX2 + FMA), v4 (AVX-512); carrier and accumulator
# f32/f32, f32/f64, f64/f64. One table per pair is chosen per process; a test proves that the three
# instruction sets give the same bits. Optimizers have no sums between elements, hence no pair f32/f64.
# -O3 in every optimised build: gcc's -O2 does not vectorise loops of unknown length.
# Sanitized builds are compiled and run once: at -O1 both together take half the time.
set(TWINSTEP_OPTIMISED $<$<CONFIG:Release,RelWithDebInfo>:-O3>)
if(TWINSTEP_SANITIZE)
  set(TWINSTEP_OPTIMISED "")
endif()
# A build that only tests, where it is made, can do with fewer objects (base/isa_objects.h).
option(TWINSTEP_WIDEST_ONLY "portable objects and those of this machine's widest set alone" OFF)
include(CheckCSourceRuns)
check_c_source_runs(
  "int main(void) {
     return !(__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
              __builtin_cpu_supports(\"bmi2\"));
   }"
  TWINSTEP_MACHINE_IS_V3)
set(TWINSTEP_ISAS base v3 v4)
set(TWINSTEP_ISA_base "")
if(TWINSTEP_SANITIZE)
  set(TWINSTEP_ISAS base)
  add_compile_definitions(TWINSTEP_BASE_ONLY=1)
  if(TWINSTEP_MACHINE_IS_V3) # without FMA each fma is a call of libm
    set(TWINSTEP_ISA_base -march=x86-64-v3)
  endif()
elseif(TWINSTEP_WIDEST_ONLY)
  check_c_source_runs(
    "int main(void) {
       return !(__builtin_cpu_supports(\"avx512f\") && __builtin_cpu_supports(\"avx512vl\") &&
                __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512dq\") &&
                __builtin_cpu_supports(\"avx512cd\"));
     }"
    TWINSTEP_MACHINE_IS_V4)
  set(widest v3)
  if(TWINSTEP_MACHINE_IS_V4)
    set(widest v4)
  endif()
  set(TWINSTEP_ISAS base ${widest})
  add_compile_definitions(TWINSTEP_WIDEST=${widest})
endif()
set(TWINSTEP_ISA_v3 -march=x86-64-v3)
set(TWINSTEP_ISA_v4 -march=x86-64-v4 -mprefer-vector-width=512)

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
      target_compile_options(${library}_${variant} PRIVATE ${TWINSTEP_OPTIMISED}
                                                                ${TWINSTEP_ISA_${isa}})
      target_compile_definitions(
        ${library}_${variant} PRIVATE TWINSTEP_VARIANT=${variant} TWINSTEP_CARRIER_${carrier}=1
                                      TWINSTEP_ACCUMULATOR_${accumulator}=1 TWINSTEP_ISA_${isa}=1)
      target_sources(twinstep_${library} PRIVATE $<TARGET_OBJECTS:${library}_${variant}>)
    endforeach()
  endforeach()
endfunction()
