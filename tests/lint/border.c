/* SPDX-License-Identifier: Apache-2.0
 * The program of the tests border_*: it does nothing, because all of the test is its link
 * (tests/CMakeLists.txt). */
int main(void) {
    return 0;
}
