#!/bin/sh
# Moves the lab to other versions: writes go.mod and go.sum. Usage: update.sh KUBERNETES ETCD,
# for example `update.sh 1.36.3 3.6.16`. Kubernetes publishes its staging modules under v0.MINOR.PATCH
# and requires them as v0.0.0, which exists nowhere, so that each must be replaced by name.
set -eu
cd "$(dirname "$0")"
. ./go.sh

kubernetes=$1 etcd=$2
published=$("$GO" mod download -json "k8s.io/kubernetes@v$kubernetes" |
    sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
goline=$(sed -n 's/^go //p' "$published")

{
    printf '// Made by update.sh %s %s.\nmodule gpu-pruner.test/lab\n\ngo %s\n\n' "$kubernetes" "$etcd" "$goline"
    sed -n 's/^\(godebug .*\)/\1\n/p' "$published"
    printf 'require (\n\tgo.etcd.io/etcd/server/v3 v%s\n\tk8s.io/kubernetes v%s\n)\n\nreplace (\n' "$etcd" "$kubernetes"
    sed -n "s|^\t\(k8s.io/[a-z-]*\) v0\.0\.0\$|\t\1 => \1 v0.${kubernetes#*.}|p" "$published"
    printf ')\n'
} >go.mod
rm -f go.sum
nice -n 19 "$GO" mod tidy
