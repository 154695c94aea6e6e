/* SPDX-License-Identifier: Apache-2.0
 * Proof that the thread sanitizer's stage can find a race: `race` adds to one number from two
 * threads; `joined` lets each thread write its own number, and adds after the join. The first must
 * be reported, the second must not. Built by TWINSTEP_SANITIZE=thread only. */
#include <stdio.h>
#include <string.h>

#define ROUNDS 10000

static void race(float *sum) {
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < 2 * ROUNDS; i++)
        *sum += 1.0f;
}

static void joined(float *sum) {
    float part[2] = {0.0f, 0.0f};
#pragma omp parallel for num_threads(2)
    for (int thread = 0; thread < 2; thread++)
        for (int i = 0; i < ROUNDS; i++)
            part[thread] += 1.0f;
    *sum = part[0] + part[1];
}

int main(int argc, char **argv) {
    float sum = 0.0f;
    if (argc == 2 && strcmp(argv[1], "race") == 0)
        race(&sum);
    else
        joined(&sum);
    printf("%g\n", (double)sum);
    return 0;
}
