# SPDX-License-Identifier: Apache-2.0
# Flags that fix the bits, for every file; warnings; sanitizers.
# -ffp-contract=off: no product is fused with a sum unless the source says fma.
# -fno-math-errno, -fno-trapping-math: sqrt becomes one instruction; neither moves a bit.
# -fno-tree-slp-vectorize: gcc 12 drops both roundings of two adjacent (double)(float) conversions
# (straight-line code at -O2; its loop vectoriser keeps them). clang has no such defect.
add_library(twinstep_flags INTERFACE)
target_include_directories(twinstep_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(twinstep_flags INTERFACE _POSIX_C_SOURCE=200809L)
target_compile_options(twinstep_flags INTERFACE -ffp-contract=off -fno-math-errno
                                                -fno-trapping-math -Wall -Wextra
                                                $<$<C_COMPILER_ID:GNU>:-fno-tree-slp-vectorize>)
target_link_libraries(twinstep_flags INTERFACE m)
if(TWINSTEP_STRICT)
  target_compile_options(
    twinstep_flags
    INTERFACE -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wundef -Wstrict-prototypes
              -Wmissing-prototypes -Wwrite-strings -Wc++-compat -Werror
              # clang: a loop it did not vectorise is a remark about speed, not a defect
              $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
endif()
include(CheckCSourceRuns)
check_c_source_runs(
  "int main(void) {
     return !(__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
              __builtin_cpu_supports(\"bmi2\"));
   }"
  TWINSTEP_MACHINE_IS_V3)
if(TWINSTEP_SANITIZE)
  if(TWINSTEP_MACHINE_IS_V3) # without these instructions every fma is a call of libm
    target_compile_options(twinstep_flags INTERFACE -march=x86-64-v3)
  endif()
  set(is_exempt $<BOOL:$<TARGET_PROPERTY:TWINSTEP_UNSANITIZED>>) # cmake/kernels.cmake
  target_compile_options(
    twinstep_flags INTERFACE $<$<NOT:${is_exempt}>:-fsanitize=${TWINSTEP_SANITIZE}>
                             -fno-omit-frame-pointer
                             $<$<NOT:${is_exempt}>:-fno-sanitize-recover=all>)
  target_link_options(twinstep_flags INTERFACE -fsanitize=${TWINSTEP_SANITIZE})
  # With addresses that are fixed a program that describes each of its globals to the address
  # sanitizer is linked in half the time, and its start touches two thirds of the pages.
  if(TWINSTEP_SANITIZE MATCHES address)
    set(is_fixed $<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>)
    set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
    target_compile_options(twinstep_flags INTERFACE $<${is_fixed}:-fno-pie>)
    target_link_options(twinstep_flags INTERFACE $<${is_program}:-no-pie>)
  endif()
endif()
# Everything is built for libFuzzer, so that it sees every branch behind a reader (tests/fuzz).
option(TWINSTEP_FUZZ "fuzz targets (clang); seconds per reader: TWINSTEP_FUZZ_SECONDS" OFF)
if(TWINSTEP_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TWINSTEP_FUZZ: libFuzzer needs -DCMAKE_C_COMPILER=clang")
  endif()
  # A target's own options stand before these, so what is exempt says so by a property.
  set(is_exempt $<BOOL:$<TARGET_PROPERTY:TWINSTEP_UNSANITIZED>>)
  set(is_untraced $<BOOL:$<TARGET_PROPERTY:TWINSTEP_UNTRACED>>) # branches are seen, operands not
  target_compile_options(
    twinstep_flags INTERFACE $<$<NOT:${is_exempt}>:-fsanitize=fuzzer-no-link,address,undefined>
                             $<$<NOT:${is_exempt}>:-fno-sanitize-recover=all>
                             $<${is_untraced}:-fno-sanitize-coverage=trace-cmp>)
  target_link_options(twinstep_flags INTERFACE -fsanitize=address,undefined)
endif()
