package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// reacquire releases the hold, and acquires the lock in the other mode.
func reacquire(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
	if _, err := l.Lease.Do(ctx, lease.Op{Kind: lease.OpRelease}); err != nil {
		return lease.Term{}, err
	}
	req := l.req
	req.Mode, req.NoWait = op.Mode, true
	lock, err := l.locker.Acquire(ctx, req)
	if err != nil {
		return lease.Term{}, err
	}
	lock.Hold().Wrap(func(next lease.Lease) lease.Lease {
		l.Lease = next
		return next
	})
	return lease.Term{Deadline: lock.Deadline(), Fence: lock.Fence()}, nil
}

// awaitConversion converts when the other holders have left.
func awaitConversion(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
	for {
		term, err := l.Lease.Do(ctx, op)
		if !errors.Is(err, locker.ErrNotAcquired) || ctx.Err() != nil {
			return term, err
		}
		<-time.After(100 * time.Millisecond)
	}
}

// The mutants are strategies/rwhash with other lines in its scripts, or other conversions.
func TestMutantsThatConvert(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range []struct {
		name          string
		sound, flawed string
		caught        string
	}{
		{
			"an upgrade beside other readers",
			"  found = find_holder(lock, false, ARGV[1])", "  found = {}",
			"only the sole reader upgrades",
		},
		{
			"a resent conversion taken for one that came too late",
			"if tonumber(number) > tonumber(ARGV[3]) then", "if tonumber(number) >= tonumber(ARGV[3]) then",
			"a conversion whose reply is lost is done once",
		},
		{
			"conversions in any order",
			"if tonumber(number) > tonumber(ARGV[3]) then", "if false then",
			"a conversion that runs late changes nothing",
		},
		{
			"a resume that ignores the mode of its handle",
			" or not noting and (lock.writer == ARGV[4]) == shared then", " then",
			"a handle has the mode of its lock",
		},
		{
			"a fencing token for each reader",
			"if shared and last and tonumber(last) > 0 then", "if false then",
			"readers have the last writer's token",
		},
		{
			"an upgrade that keeps the token of the readers",
			"writer_fence(not mine)", "writer_fence(false)",
			"an upgrade mints a token",
		},
		{
			"readers that pass a waiting writer",
			"elseif lock.bar <= lock.now and lock.now < till then", "elseif false then",
			"a waiting writer gets in although readers keep coming",
		},
		{
			"a writer that keeps readers out when it has given up",
			"lock.life = math.min(life, tonumber(ARGV[9]) or life)", "lock.life, bound = 60000, 60000",
			"a writer that gave up lets readers in",
		},
		{
			"an attempt that keeps others out without waiting",
			"if waits and (shared or not lock.writer and not passed_over) then",
			"if shared or not lock.writer and not passed_over then",
			"an attempt that does not wait keeps nobody out",
		},
	} {
		flawed, sound := rwhashWith(t, m.sound, m.flawed), rwhashWith(t, "", "")
		suspects = append(suspects, suspect{m.name, flawed, sound, []string{m.caught}})
	}
	for _, m := range []struct {
		name    string
		convert operates
		caught  []string
	}{
		{
			"a conversion that releases and acquires again", reacquire,
			[]string{"a downgrade lets no writer in"},
		},
		{
			"an upgrade that waits for other readers", awaitConversion,
			[]string{"two upgraders do not wait for each other", "only the sole reader upgrades"},
		},
		{
			"a conversion that renews", func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
				if term, err := l.Lease.Do(ctx, op); err != nil {
					return term, err
				}
				return l.Lease.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: l.req.TTL})
			},
			[]string{"a conversion keeps the lease"},
		},
	} {
		flawed := rwhashWith(t, "", "")
		flawed.Around = operating(converting(m.convert))
		suspects = append(suspects, suspect{m.name, flawed, rwhashWith(t, "", ""), m.caught})
	}
	silent, sound := rwhashWith(t, "    wake_all(queue, ARGV[4])", ""), rwhashWith(t, "", "")
	convict(t, append(suspects, suspect{
		"a downgrade that wakes nobody", silent, sound, []string{"a downgrade wakes readers"},
	}))
}
