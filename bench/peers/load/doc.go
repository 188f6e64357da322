// Package load has goroutines, of one process or of several, take locks for a while. It counts the
// costs, and the simultaneous holds of one lock. It runs on Unix.
package load
