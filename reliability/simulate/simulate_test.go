package simulate_test

import (
	"context"
	goredis "github.com/redis/go-redis/v9"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/reliability/simulate"
)

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
func init()                                          { goredis.SetLogger(quiet{}) }

func TestX(t *testing.T) {
	for seed := range uint64(40) {
		start := time.Now()
		o := simulate.Run(t, simulate.NewPlan(seed), nil)
		t.Log(seed, o.Plan, o.Operations, o.Faults, o.Losses, time.Since(start).Round(time.Millisecond))
		if o.Violated() || o.Undecided() {
			t.Errorf("seed %d: %v", seed, o.Report(t.TempDir()))
		}
	}
}
