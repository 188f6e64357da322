// Package timers proves that Holdfast leaves no timer behind: neither one of package time nor that
// of a context with a deadline. It has tests only.
//
// They profile every allocation of their process. Once all locks are released and all drivers and
// clients closed, a timer that code of locker, strategies, middleware or providers made and that is
// still in use after a garbage collection is a leak. The runtime keeps timers that are set, and the
// collector frees those that were stopped or have fired, and those whose channel nobody reads.
// Timers that the clients make for themselves are not counted.
package timers
