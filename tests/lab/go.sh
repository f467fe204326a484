# Sourced by build.sh and update.sh: finds Go and keeps it to what is installed.
GO=$(command -v go || true)
[ -n "$GO" ] || GO=/usr/local/go/bin/go # where Go's own installer puts it
if ! "$GO" version >/dev/null 2>&1; then
    echo 'The lab needs Go 1.26 or newer: https://go.dev/doc/install' >&2
    exit 1
fi
export GOTOOLCHAIN=local CGO_ENABLED=0
