package simulate_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// The flags of a long run, see `make simulate`. Without them the tests run as usual.
var (
	seconds   = flag.Int("seconds", 0, "run schedules for so long")
	schedules = flag.Int("schedules", 0, "run so many schedules; 0: as many as there is time for")
	firstSeed = flag.Uint64("seed", 0, "the seed of the first one; the next have the next numbers; 0: from the clock")
	repeat    = flag.Int("repeat", 1, "run each schedule so often: goroutines interleave anew")
	enough    = flag.Int("enough", 0, "end a process after so many schedules with violations; 0: go on")
	flawed    = flag.String("flawed", "", "run a lock that is known to be wrong, to see that it is found out")
	folder    = flag.String("dir", "", "where histories of violations go; default: the temporary folder")
	stride    = flag.Uint64("stride", 0, "of the processes of a run: run every so many-th seed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	goredis.SetLogger(silent{}) // it logs every broken connection
	switch {
	case *stride > 0: // one of the processes
		os.Exit(m.Run())
	case *seconds > 0 || *schedules > 0:
		if *firstSeed == 0 {
			*firstSeed = uint64(time.Now().Unix())
		}
		sum, err := simulateAll()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Println(sum.line())
		if err != nil || sum.violations > 0 {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
