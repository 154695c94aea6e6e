/* SPDX-License-Identifier: Apache-2.0
 * Group setup and teardown that give a test program which writes files a folder of its own. The
 * program runs inside it; the folder and what is in it are removed afterwards. */
#ifndef TWINSTEP_TESTS_MODEL_HELPER_FOLDER_H
#define TWINSTEP_TESTS_MODEL_HELPER_FOLDER_H

int helper_folder_enter(void **state);
int helper_folder_leave(void **state);

#endif
