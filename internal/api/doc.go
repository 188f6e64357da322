// Package api holds the test that compares the modules' exported names with the listings api.txt. A
// change of the API is a change of a listing, seen by reviewers, and scripts/apidiff.sh compares
// the listings with those of the latest release. docs/versions.md has the rules for changes.
package api
