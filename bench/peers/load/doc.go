// Package load has goroutines, of one process or of several, take locks for a while, and counts
// what that took and whether two of them ever held the same one. It runs on Unix.
package load
