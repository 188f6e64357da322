// Package api holds the test that compares what the modules export with the listings api.txt. A
// change of the API is a change of a listing, which reviewers see, and scripts/apidiff.sh compares
// the listings with those of the latest release. docs/versions.md says what may change when.
package api
