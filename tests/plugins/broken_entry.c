/* SPDX-License-Identifier: Apache-2.0
 * Shared objects without the entry of this version: NO_ENTRY has none, OTHER_ENTRY has that of
 * another version, and MISSING needs a function that nothing provides. */
#if defined(OTHER_ENTRY)
extern const int twinstep_optim_v2;
const int twinstep_optim_v2 = 2;
#elif defined(MISSING)
extern double function_that_nothing_has(double x);
extern double missing(double x);
double missing(double x) {
    return function_that_nothing_has(x);
}
#else
extern const int nothing_to_see;
const int nothing_to_see = 0;
#endif
