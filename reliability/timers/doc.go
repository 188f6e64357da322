// Package timers proves that Holdfast leaves no timer behind: neither one of package time nor one
// of a context's deadline. It has tests only.
//
// They profile every allocation of their process. Once all locks are released and all drivers and
// clients closed, a timer made by code of locker, strategies, middleware or providers is a leak if
// it is still in use after a garbage collection. The runtime keeps set timers. The collector frees
// stopped and fired ones, and those with a channel nobody reads. Timers made by the clients for
// themselves are not counted.
package timers
