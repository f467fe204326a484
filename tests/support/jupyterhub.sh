#!/bin/sh
# Installs a JupyterHub unless it is there, and prints its Python. Usage: jupyterhub.sh [--where].
# --where only prints the path. It lies outside the checkout and outside .venv, because a Hub brings
# some fifty packages that the product has nothing to do with.
set -eu
cd "$(dirname "$0")/jupyterhub"

key=$(cat constraints.txt ../jupyterhub.sh | cksum | tr ' ' '-')
place=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-pruner/jupyterhub/$key
if [ "${1-}" = --where ] || [ -e "$place/complete" ]; then
    echo "$place/bin/python"
    exit
fi

echo 'Installing JupyterHub: a minute the first time' >&2
python=$(command -v ../../../.venv/bin/python || command -v python3)
"$python" -m venv --clear "$place"
"$place/bin/python" -m pip --disable-pip-version-check install -q -c constraints.txt jupyterhub jupyterhub-kubespawner
touch "$place/complete"
echo "$place/bin/python"
