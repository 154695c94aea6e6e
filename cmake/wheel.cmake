# SPDX-License-Identifier: Apache-2.0
# The Python wheel that holds the program (preset `wheel`): BUILD/twinstep-VERSION-py3-none-TAG.whl.
# docs/PYTHON.md has the commands, docs/decisions/python-package.md the reasons.
if(TWINSTEP_STATIC)
  find_program(PYTHON3 python3 REQUIRED)
  file(GLOB_RECURSE wheel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/*)
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/wheel.stamp
    COMMAND ${CMAKE_STRIP} -o ${CMAKE_BINARY_DIR}/stripped $<TARGET_FILE:twinstep>
    COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/python/twinstep_build.py ${CMAKE_BINARY_DIR} --program
            ${CMAKE_BINARY_DIR}/stripped
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/wheel.stamp
    DEPENDS twinstep ${wheel_sources}
    COMMENT "Python wheel"
    VERBATIM)
  add_custom_target(wheel ALL DEPENDS ${CMAKE_BINARY_DIR}/wheel.stamp)

  # What we use of GSL is linked with its complex numbers, which nobody calls. They ask for glibc's
  # hypot of 2.35; with the older one the wheel installs where glibc is 2.34, as on RHEL 9.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/hypot.c CONTENT
"double hypot_of_2_2_5(double x, double y);
double __wrap_hypot(double x, double y);
__asm__(\".symver hypot_of_2_2_5, hypot@GLIBC_2.2.5\");
double __wrap_hypot(double x, double y) {
    return hypot_of_2_2_5(x, y);
}
")
    target_sources(twinstep PRIVATE ${CMAKE_BINARY_DIR}/hypot.c)
    target_link_options(twinstep PRIVATE -Wl,--wrap=hypot)
  endif()
endif()
