/* SPDX-License-Identifier: Apache-2.0
 * A folder of its own for a test program that writes files: group setup and teardown. The program
 * runs inside; the folder and what is in it go with it. */
#ifndef TWINSTEP_TESTS_MODEL_HELPER_FOLDER_H
#define TWINSTEP_TESTS_MODEL_HELPER_FOLDER_H

int helper_folder_enter(void **state);
int helper_folder_leave(void **state);

#endif
