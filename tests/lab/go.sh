# Sourced by build.sh, update.sh and prometheus3.sh: finds Go and keeps it to what is installed.
GO=$(command -v go || true)
[ -n "$GO" ] || GO=/usr/local/go/bin/go # where Go's own installer puts it
go_needed=1.26
go_found=$("$GO" env GOVERSION 2>/dev/null | sed 's/^go//') || go_found=
if [ "$(printf '%s\n' "$go_needed" "${go_found:-0}" | sort -V | head -n 1)" != "$go_needed" ]; then
    echo "The lab needs Go $go_needed or newer: https://go.dev/doc/install" >&2
    exit 1
fi
export GOTOOLCHAIN=local CGO_ENABLED=0
