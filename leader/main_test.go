package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const name = "job"

var match = check.Is

// wrap puts waiting and renewal around a strategy.
func wrap(strategy locker.Locker) locker.Locker {
	return locker.Must(holdfast.Wrap(strategy, holdfast.Config{}))
}

// runner is a running Candidate.
type runner struct {
	t *testing.T
	*leader.Candidate
	terms chan int64 // of each call of Lead
	stop  context.CancelFunc
	ended chan error // results of Run
}

// run starts a Candidate. Its Lead waits for the end of its ctx, unless cfg has another.
func run(t *testing.T, l locker.Locker, cfg leader.Config) *runner {
	t.Helper()
	r := &runner{t: t, terms: make(chan int64, 100), ended: make(chan error, 1)}
	lead := cfg.Lead
	if lead == nil {
		lead = func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if cfg.Name == "" {
		cfg.Name = name
	}
	cfg.Lead = func(ctx context.Context, term int64) error {
		r.terms <- term
		return lead(ctx, term)
	}
	r.Candidate = locker.Must(leader.New(l, cfg))
	r.again()
	t.Cleanup(func() { r.stop() })
	return r
}

// again calls Run.
func (r *runner) again() {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(r.t.Context())
	go func() { r.ended <- r.Run(ctx) }()
}

// patience allows for a busy machine: anything longer hangs.
const patience = 30 * time.Second

// leads waits until the Candidate leads, and returns its term.
func (r *runner) leads() int64 {
	r.t.Helper()
	select {
	case term := <-r.terms:
		return term
	case err := <-r.ended:
		r.t.Fatalf("Run returned %v", err)
	case <-time.After(patience):
		r.t.Fatal("the candidate does not lead")
	}
	return 0
}

// result waits until Run returns.
func (r *runner) result() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		r.t.Fatal("Run does not return")
		return nil
	}
}

// isLeader checks the Candidate's own report.
func (r *runner) isLeader(want int64) {
	r.t.Helper()
	term, leads := r.Term()
	if term != want || leads != (want != 0) {
		r.t.Errorf("Term returns %d and %t, want %d", term, leads, want)
	}
	if r.IsLeader() != leads {
		r.t.Errorf("IsLeader: %t, but Term says %t", !leads, leads)
	}
}
