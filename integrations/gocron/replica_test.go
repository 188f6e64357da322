package gocronlock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	gocronlock "github.com/holdfast-go/holdfast/integrations/gocron"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// replicaOf makes the test program a replica whose first run never ends: the address of its server.
const replicaOf = "HOLDFAST_TEST_GOCRON_REPLICA"

// isReplica reports whether this process is a replica that a test started, once that has ended.
func isReplica() bool {
	addr := os.Getenv(replicaOf)
	if addr == "" {
		return false
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	l := locker.Must(holdfast.New(locker.Must(goredis.New(client)), holdfast.Config{}))
	locks := locker.Must(gocronlock.New(l, gocronlock.Config{TTL: killedTTL}))
	s := locker.Must(gocron.NewScheduler(gocron.WithDistributedLocker(locks)))
	locker.Must(s.NewJob(gocron.DurationJob(50*time.Millisecond), gocron.NewTask(func() {
		_, _ = fmt.Fprintln(os.Stdout, "running")
		select {}
	}), gocron.WithName("report")))
	s.Start()
	time.Sleep(time.Minute) //nolint:forbidigo // the test kills it sooner
	return true
}

func replicaCommand(ctx context.Context, addr string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-test.run=^$")
	cmd.Env = append(os.Environ(), replicaOf+"="+addr)
	cmd.Stderr = os.Stderr
	return cmd, nil
}
