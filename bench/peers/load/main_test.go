//go:build unix

package load

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/bench/peers/contender"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
)

// TestMain is the program of worker processes too. It adds contenders without a server.
func TestMain(m *testing.M) {
	contender.All = append(contender.All,
		contender.Contender{Name: "mutex", Open: mutex},
		contender.Contender{Name: "broken", Open: broken},
		contender.Contender{Name: "hanging", Open: hanging},
		contender.Contender{Name: "frozen", Open: frozen},
		contender.Contender{Name: "failing", Open: failing},
	)
	if os.Getenv(WorkerVariable) != "" {
		if err := Worker(os.Stdin, os.Stdout); err != nil {
			os.Exit(2)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// releaser is a Lock.
type releaser func()

func (r releaser) Release(context.Context) error { r(); return nil }

func mutex(contender.Options) (*contender.Locks, error) {
	var mu sync.Mutex
	return &contender.Locks{
		Acquire: func(string) (contender.Lock, error) {
			mu.Lock()
			return releaser(mu.Unlock), nil
		},
		Close: func() {},
	}, nil
}

// broken excludes nobody.
func broken(contender.Options) (*contender.Locks, error) {
	return &contender.Locks{
		Acquire: func(string) (contender.Lock, error) { return releaser(func() {}), nil },
		Close:   func() {},
	}, nil
}

// hanging grants the first cycle and two more locks, and then none until it is closed.
func hanging(contender.Options) (*contender.Locks, error) { return granting(3) }

// frozen grants nothing until it is closed.
func frozen(contender.Options) (*contender.Locks, error) { return granting(0) }

func granting(n int) (*contender.Locks, error) {
	tokens, closed := make(chan struct{}, n), make(chan struct{})
	for range cap(tokens) {
		tokens <- struct{}{}
	}
	return &contender.Locks{
		Acquire: func(string) (contender.Lock, error) {
			select {
			case <-tokens:
				return releaser(func() {}), nil
			case <-closed:
				return nil, errors.New("closed")
			}
		},
		Close: func() { close(closed) },
	}, nil
}

// failing grants the first cycle only.
func failing(contender.Options) (*contender.Locks, error) {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	return &contender.Locks{
		Acquire: func(string) (contender.Lock, error) {
			select {
			case <-first:
				return releaser(func() {}), nil
			default:
				return nil, errors.New("no more")
			}
		},
		Close: func() {},
	}, nil
}

func newJob(t *testing.T, name string) (Job, *Sections) {
	t.Helper()
	job := Job{
		Contender: name, Goroutines: 4, Names: 1,
		RunIn: 5 * time.Millisecond, For: 50 * time.Millisecond, Grace: time.Minute,
		Sections: filepath.Join(t.TempDir(), "sections"),
	}
	sections := locker.Must(CreateSections(job.Sections, 1))
	t.Cleanup(func() { check.OK(t, sections.Close()) })
	return job, sections
}
