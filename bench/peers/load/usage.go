//go:build unix

package load

import (
	"runtime"
	"syscall"
	"time"
)

// Usage is the resource use of this process so far.
type Usage struct {
	Mallocs, Bytes uint64        // allocated, freed or not
	CPU            time.Duration // of all cores
}

// ReadUsage returns the present Usage.
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

// Memory returns how many bytes of heap and stacks are in use, after collections until one frees at
// most a KiB: goroutines of closed contenders may still be ending.
func Memory() (bytes int64) {
	const patience, pause = 50, 20 * time.Millisecond
	for i := range patience {
		if i > 0 {
			<-time.After(pause)
		}
		runtime.GC()
		runtime.GC() // finalizers and sync.Pools take two
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		before := bytes
		if bytes = int64(m.HeapAlloc + m.StackInuse); before-bytes < 1<<10 && i > 0 {
			break
		}
	}
	return bytes
}
