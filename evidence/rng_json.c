/* SPDX-License-Identifier: Apache-2.0
 * Writes what determinism/ledger.c compared; compares nothing itself. */
#include "evidence/rng_json.h"

#include <inttypes.h>
#include <stdio.h>

/* A seed as a number or, beyond 2^63 - 1, where jansson's integers end, as a string. */
static json_t *seed_json(uint64_t seed) {
    char text[24];
    if (seed <= INT64_MAX) return json_integer((json_int_t)seed);
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return json_string(text);
}

json_t *rng_json(const struct ledger_difference *rng, const char *text) {
    if (text[0] == '\0') return json_null();
    json_t *seeds = json_array();
    for (uint32_t i = 0; i < rng->seed_count; i++)
        json_array_append_new(seeds, json_pack("{ss s[oo]}", "stream", rng->seeds[i].stream, "seed",
                                               seed_json(rng->seeds[i].seed[0]),
                                               seed_json(rng->seeds[i].seed[1])));
    json_t *object = json_pack("{ss so}", "text", text, "seeds", seeds);
    const struct ledger_place *place = &rng->place;
    if (place->stream != NULL)
        json_object_set_new(object, "place",
                            json_pack("{ss sI s[oo] s[oo]}", "stream", place->stream, "update",
                                      (json_int_t)place->update, "seed", seed_json(place->seed[0]),
                                      seed_json(place->seed[1]), "clock",
                                      seed_json(place->clock[0]), seed_json(place->clock[1])));
    if (!rng->found) return object;
    json_object_set_new(object, "update", json_integer((json_int_t)rng->update));
    json_object_set_new(object, "consumer", json_string(rng->consumer));
    json_object_set_new(object, "words",
                        json_pack("[II]", (json_int_t)rng->words[0], (json_int_t)rng->words[1]));
    json_object_set_new(object, "others", json_integer((json_int_t)rng->others));
    return object;
}
