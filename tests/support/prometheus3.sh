#!/bin/sh
# Builds a Prometheus 3 unless it is there, and prints its path. Usage: prometheus3.sh [--where].
# --where only prints the path. It lies outside the checkout, under a hash of everything that it is
# made from. Service discoveries are left out: the tests name their targets.
set -eu
cd "$(dirname "$0")/prometheus3"

key=$(cat go.mod go.sum ../prometheus3.sh | cksum | tr ' ' '-')
binary=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-pruner/prometheus3/$key/prometheus
if [ "${1-}" = --where ] || [ -x "$binary" ]; then
    echo "$binary"
    exit
fi

. ../../lab/go.sh
release=$(sed -n 's/^\tgithub.com\/prometheus\/prometheus v0\.\([0-9]*\)\.\([0-9]*\).*$/\1.\2/p' go.mod)
version=3.$((${release%.*} - 300)).${release#*.} # the module v0.316.0 is Prometheus 3.16.0

echo "Building Prometheus $version: some ten minutes the first time" >&2
mkdir -p "$(dirname "$binary")"
nice -n 19 "$GO" build -trimpath -buildvcs=false -p 2 -tags remove_all_sd \
    -ldflags "-s -w -X github.com/prometheus/common/version.Version=$version" \
    -o "$binary.$$" github.com/prometheus/prometheus/cmd/prometheus
mv "$binary.$$" "$binary"
echo "$binary"
