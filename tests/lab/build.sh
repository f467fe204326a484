#!/bin/sh
# Builds the lab's binary unless it is there, and prints its path. Usage: build.sh [--where].
# --where only prints the path. It lies outside the checkout, under a hash of everything that it is
# made from, so that a fresh clone finds what an earlier one has built.
set -eu
cd "$(dirname "$0")"

key=$(cat go.mod go.sum ./*.go build.sh | cksum | tr ' ' '-')
binary=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-pruner/lab/$key/lab
if [ "${1-}" = --where ] || [ -x "$binary" ]; then
    echo "$binary"
    exit
fi

. ./go.sh
release=$(sed -n 's/^\tk8s.io\/kubernetes v\([0-9.]*\)$/\1/p' go.mod)
flags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    for assignment in "gitVersion=v$release" "gitMajor=${release%%.*}" \
        "gitMinor=$(echo "$release" | cut -d. -f2)" gitTreeState=clean; do
        flags="$flags -X $package.$assignment" # unset, the API server calls itself v0.0.0-master
    done
done

echo "Building Kubernetes $release for the lab: many minutes the first time" >&2
mkdir -p "$(dirname "$binary")"
nice -n 19 "$GO" build -trimpath -buildvcs=false -p 2 -ldflags "$flags" -o "$binary.$$" .
mv "$binary.$$" "$binary"
echo "$binary"
