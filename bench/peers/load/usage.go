//go:build unix

package load

import (
	"runtime"
	"syscall"
	"time"
)

// Usage is what this process has used so far.
type Usage struct {
	Mallocs, Bytes uint64        // allocated, freed or not
	CPU            time.Duration // of all cores
}

// ReadUsage returns what this process has used so far.
func ReadUsage() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{m.Mallocs, m.TotalAlloc, CPU()}
}

// CPU returns for how long this process has run, on all cores together.
func CPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0 // it fails for no argument but a bad one
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Memory returns how many bytes of heap and stacks are in use, after collections: what has a
// finalizer, is in a sync.Pool or was a stack takes more than one.
func Memory() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
