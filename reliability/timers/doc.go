// Package timers proves that Holdfast leaves no timer behind: neither one of package time nor that
// of a context with a deadline. It has tests only.
//
// They profile every allocation of their process. When all locks are released and all drivers and
// clients closed, whatever timer was made by code of locker, strategies, middleware or providers
// and is still in use after a garbage collection is a leak: the runtime keeps what is set, and the
// collector takes what was stopped, has fired, or is a channel that nobody reads. Timers that the
// clients make for themselves are theirs.
package timers
