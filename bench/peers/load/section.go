//go:build unix

package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Sections are the critical sections under the locks, one for each name. They are in memory shared
// by all processes: they see exclusion independently of Redis.
type Sections struct {
	memory []byte
	all    []section
}

// section is one of them, on a cache line of its own.
type section struct {
	inside     atomic.Int64 // holders inside now
	entries    atomic.Int64
	violations atomic.Int64 // entries with another holder inside
	handOvers  atomic.Int64 // entries of another worker than the one before
	last       atomic.Int64 // worker of the last entry
	_          [3]int64
}

// yields is the number of entries after which the holder lets others run. The section is so short
// that a lock without exclusion would hardly be found out otherwise.
const yields = 8

// CreateSections makes the file of n sections to be shared by processes, and opens it.
func CreateSections(path string, n int) (*Sections, error) {
	if err := os.WriteFile(path, make([]byte, n*int(unsafe.Sizeof(section{}))), 0o600); err != nil {
		return nil, err
	}
	return OpenSections(path)
}

// OpenSections opens the file of CreateSections.
func OpenSections(path string) (_ *Sections, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := int(info.Size()) / int(unsafe.Sizeof(section{}))
	if n == 0 {
		return nil, fmt.Errorf("%s has no sections", path)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &Sections{memory, unsafe.Slice((*section)(unsafe.Pointer(&memory[0])), n)}, nil
}

// Close unmaps the memory. Nobody may be inside.
func (s *Sections) Close() error { return syscall.Munmap(s.memory) }

// Enter is called by the holder of lock number i. Workers have numbers from 1.
func (s *Sections) Enter(i, worker int) {
	section := &s.all[i]
	if section.inside.Add(1) != 1 {
		section.violations.Add(1)
	}
	if section.last.Swap(int64(worker)) != int64(worker) {
		section.handOvers.Add(1)
	}
	if section.entries.Add(1)%yields == 0 {
		runtime.Gosched()
	}
}

// Leave is called before the lock is released.
func (s *Sections) Leave(i int) { s.all[i].inside.Add(-1) }

// Violations returns the number of entries with another worker inside.
func (s *Sections) Violations() int64 {
	return s.sum(func(x *section) *atomic.Int64 { return &x.violations })
}

// HandOvers returns how often a worker entered a section after another.
func (s *Sections) HandOvers() int64 {
	return s.sum(func(x *section) *atomic.Int64 { return &x.handOvers })
}

func (s *Sections) sum(of func(*section) *atomic.Int64) (n int64) {
	for i := range s.all {
		n += of(&s.all[i]).Load()
	}
	return n
}
