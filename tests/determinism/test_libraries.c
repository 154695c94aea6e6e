/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The versions of the libraries, against those of the headers: the tests run where they were
 * built. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <gsl/gsl_version.h>
#include <hdf5.h>
#include <nettle/version.h>
#include <stdio.h>

#include "determinism/libraries.h"

static void validate_versions(void **state) {
    (void)state;
    struct library came[LIBRARIES_COUNT];
    char hdf5[32], nettle[32];
    snprintf(hdf5, sizeof hdf5, "%d.%d.%d", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    snprintf(nettle, sizeof nettle, "%d.%d", NETTLE_VERSION_MAJOR, NETTLE_VERSION_MINOR);
    const char *const expected[LIBRARIES_COUNT][2] = {
        {"HDF5", hdf5}, {"GSL", GSL_VERSION}, {"nettle", nettle}};
    libraries_versions(came);
    for (size_t i = 0; i < LIBRARIES_COUNT; i++) {
        assert_string_equal(came[i].name, expected[i][0]);
        assert_string_equal(came[i].version, expected[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_versions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
