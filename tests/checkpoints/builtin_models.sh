#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains builtin:base by the command of scenarios/models/README.md and compares the files with those
# that are committed: builtin_models.sh BINARY SOURCE_FOLDER. Ends with 1 where a byte differs.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$1" run "$2/scenarios/models/base.yaml" --save-model "base=$folder/base" --quiet
for name in config.json model.safetensors; do
    cmp "base/$name" "$2/scenarios/models/base/$name"
done
