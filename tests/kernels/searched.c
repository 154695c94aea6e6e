/* SPDX-License-Identifier: Apache-2.0
 * The library that test_library_search copies to where it must be found. */
int searched_number(void);

int searched_number(void) {
    return 42;
}
