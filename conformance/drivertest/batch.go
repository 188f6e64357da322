package drivertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var batches = []Feature{FeatureBatch}

var batchCases = []testCase{
	{
		name: "a batch answers in order", on: suite.AllKinds, needs: batches,
		why: "renewals of many locks travel together, and each must learn its own outcome",
		run: batchAnswersInOrder,
	},
	{
		name: "a batch sends unknown scripts once", on: suite.WithoutSentinel, own: true, needs: batches,
		why: "NOSCRIPT comes for some calls of a batch and not for others; none may run twice",
		run: batchSendsUnknownScriptsOnce,
	},
	{
		name: "a batch obeys its context", on: suite.OneAddress, needs: batches,
		why: "a frozen server must not block the renewals of all locks for longer than they asked",
		run: batchObeysItsContext,
	},
	{
		name: "a cut batch has an unknown outcome", on: suite.OneAddress, needs: batches,
		why: "after EOF it is unknown of each call whether it ran, and a resend may run it twice",
		run: cutBatchIsUnknown,
	},
	{
		name: "an empty batch sends nothing", on: suite.WithoutSentinel, needs: batches,
		why: "all renewals due may have been cancelled meanwhile",
		run: func(t *caseT) {
			if got := t.batcher(t.Driver()).EvalMany(t.Ctx, nil); len(got) != 0 {
				t.Errorf("EvalMany without calls returned %d results", len(got))
			}
		},
	},
}

func (t *caseT) batcher(drv driver.Driver) driver.Batcher {
	t.Helper()
	b, ok := drv.(driver.Batcher)
	if !ok {
		t.Fatalf("%T is no driver.Batcher; if the provider has none, Harness.Lacks must name FeatureBatch", drv)
	}
	return b
}

// many calls EvalMany and demands as many results.
func (t *caseT) many(ctx context.Context, drv driver.Driver, calls []driver.Call) []driver.Result {
	t.Helper()
	var results []driver.Result
	t.Promptly("EvalMany", func() { results = t.batcher(drv).EvalMany(ctx, calls) })
	if len(results) != len(calls) {
		t.Fatalf("EvalMany returned %d results for %d calls", len(results), len(calls))
	}
	return results
}

func batchAnswersInOrder(t *caseT) {
	drv := t.Driver()
	echo, failing := script(`return {KEYS[1], ARGV[1]}`), script(`return redis.error_reply('MYCODE of ' .. ARGV[1])`)
	for range 2 { // scripts unknown to the server, then known
		var calls []driver.Call
		for i := range 20 {
			call := driver.Call{Script: echo, Keys: []string{t.Key()}, Args: []string{fmt.Sprint(i)}}
			if i%7 == 3 {
				call.Script = failing
			}
			calls = append(calls, call)
		}
		for i, r := range t.many(t.Ctx, drv, calls) {
			if i%7 == 3 {
				t.refused(r.Err, fmt.Sprint("MYCODE of ", i), "a failing call of the batch")
				continue
			}
			t.OK(r.Err, "call %d of the batch", i)
			key, _ := r.Reply.Text(0)
			arg, _ := r.Reply.Text(1)
			if key != calls[i].Keys[0] || arg != calls[i].Args[0] {
				t.Errorf("call %d got the answer %q, %q; want %q, %q", i, key, arg, calls[i].Keys[0], calls[i].Args[0])
			}
		}
	}
}

func batchSendsUnknownScriptsOnce(t *caseT) {
	drv := t.Driver()
	other := script(`return redis.call('INCRBY', KEYS[1], 1)`)
	t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "FLUSH"), "SCRIPT FLUSH")
	t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "LOAD", other.Source()), "SCRIPT LOAD")
	for round := range int64(2) {
		calls := make([]driver.Call, 12)
		for i := range calls {
			calls[i] = driver.Call{Script: countScript, Keys: []string{fmt.Sprint("batch", i)}}
			if i%3 == 1 {
				calls[i].Script = other
			}
		}
		for i, r := range t.many(t.Ctx, drv, calls) {
			t.OK(r.Err, "call %d", i)
			if n, err := r.Reply.Int(0); err != nil || n != round+1 {
				t.Errorf("round %d: call %d has run %d times (%v)", round+1, i, n, err)
			}
		}
	}
}

func batchObeysItsContext(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	call := func(key string) []driver.Call {
		return []driver.Call{{Script: countScript, Keys: []string{key}}, {Script: countScript, Keys: []string{key}}}
	}
	over, cancel := context.WithCancel(t.Ctx)
	cancel()
	key := t.Key()
	for i, r := range t.many(over, drv, call(key)) {
		t.Is(r.Err, driver.ErrNotSent, "call %d under a cancelled context", i)
	}
	if t.Exists(key) {
		t.Errorf("a batch under a cancelled context was executed")
	}

	for want, newContext := range endings {
		if !t.endsHere(want) {
			continue
		}
		key := t.Key()
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(key), Every: true, Fault: faultproxy.StallRequest})
		ctx, stop := newContext(t, trap.Hit())
		open := 0
		for i, r := range t.many(ctx, drv, call(key)) {
			t.Is(r.Err, want, "call %d held back", i)
			if !errors.Is(r.Err, driver.ErrNotSent) {
				open++
			}
		}
		stop()
		t.Event(trap.Hit(), "the batch is held back")
		trap.Release()
		t.Eventually("what was sent of the late batch, and no more than did not say that it was not, has run",
			func() bool {
				sent := p.Sent(key)
				return eval.ran(t, key) == sent && sent <= open
			})
	}
}

func cutBatchIsUnknown(t *caseT) {
	p, drv := t.Proxied()
	t.warm(drv, countScript)
	key, last := t.Key(), t.Key()
	p.Fail(key, faultproxy.Cut)
	results := t.many(t.Ctx, drv, []driver.Call{
		{Script: countScript, Keys: []string{key}}, {Script: countScript, Keys: []string{last}},
	})
	t.unknown(results[0].Err, "the call whose reply was cut off")
	if results[1].Err != nil { // it may have travelled on another connection
		t.unknown(results[1].Err, "the call behind it")
	}
	t.SentOnce(p, key, "the call whose reply was cut off")
	if n := p.Sent(last); n > 1 { // the cut may have come before it
		t.Errorf("the call behind it was sent %d times", n)
	}
	eval.mustRun(t, key, 1)
	t.Eventually("the next batch works", func() bool {
		return t.many(t.Ctx, drv, []driver.Call{{Script: countScript, Keys: []string{t.Key()}}})[0].Err == nil
	})
}
