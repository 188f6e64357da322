#!/usr/bin/env bash
# Runs golangci-lint over every module, always at the version below: an installed one of that version, else one built
# from its source by `go run`, which keeps it out of go.mod. The first build takes about three minutes; Go caches it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=2.15.0

if [[ $(golangci-lint version --short 2>/dev/null) == "$version" ]]; then
	lint=(golangci-lint)
else
	lint=(go run "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$version")
fi
exec scripts/modules.sh "${lint[@]}" run --config "$PWD/.golangci.yaml" ./...
