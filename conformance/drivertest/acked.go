package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var acks = []Feature{FeatureReplicas}

var ackedCases = []testCase{
	{
		name: "a script is answered with its acknowledgements", on: suite.AllKinds, needs: acks,
		why: "a hold counts only when replicas have it, and the script's own reply must not be lost",
		run: scriptIsAnsweredWithAcks,
	},
	{
		name: "a frozen replica acknowledges nothing", on: suite.OnlySingle, own: true, needs: acks,
		why: "with a false acknowledgement a failover loses the lock",
		run: frozenReplicaAcksNothing,
	},
	{
		name: "a WAIT delays no other call", on: suite.OnlySingle, own: true, needs: acks,
		why: "on a shared connection one slow replica would stop all locks of the process",
		run: waitDelaysNobody,
	},
	{
		name: "a script with a WAIT is sent once", on: suite.OnlyMemory, needs: acks,
		why: "after EOF it is unknown whether the script ran, and a resend may run it twice",
		run: scriptWithWaitIsSentOnce,
	},
	{
		name: "a lost acknowledgement leaves the outcome unknown", on: suite.OnlyMemory, needs: acks,
		why: "the script has run, and it is unknown what the replicas have: it must not look refused",
		run: lostAckLeavesUnknown,
	},
	{
		name: "a WAIT obeys its context", on: suite.OneAddress, needs: acks,
		why: "silent replicas must not block a caller for longer than it asked",
		run: waitObeysItsContext,
	},
	{
		name: "a refused WAIT is reported", on: suite.OnlySingle, needs: acks,
		why: "for a user without the right to WAIT the script has still run: \"NOPERM, nothing was done\" would leave its key",
		run: refusedWaitIsReported,
	},
	{
		name: "a refused script has no acknowledgement", on: suite.WithoutSentinel, needs: acks,
		why: "the reply to the WAIT behind it must not become its own or the next command's",
		run: refusedScriptHasNoAck,
	},
	{
		name: "a WAIT follows its script to the new node", on: suite.OnlyCluster, own: true, needs: acks,
		why: "after MOVED or ASK the old node still answers WAIT, for replicas that never get the key",
		run: waitFollowsItsScript,
	},
}

// acked increments a counter with a WAIT behind it, and demands its value and the acknowledgements.
func (t *caseT) acked(drv driver.Driver, key string, replicas int, within time.Duration, count int64, acked int) {
	t.Helper()
	reply, got, err := drv.EvalAcked(t.Ctx, countScript, []string{key}, nil, replicas, within)
	t.OK(err, "EvalAcked")
	if n, err := reply.Int(0); n != count || err != nil {
		t.Errorf("the script was answered %d (%v), want %d", n, err, count)
	}
	if got != acked {
		t.Errorf("%d replicas acknowledged, want %d", got, acked)
	}
}

func scriptIsAnsweredWithAcks(t *caseT) {
	drv, key, want := t.Driver(), t.Key(), 0
	if t.Server.Sentinel != nil {
		want = len(t.Server.Sentinel.Servers()) - 1
	}
	within := 20 * time.Millisecond // the time of the WAIT without replicas
	if want > 0 {
		within = t.Limit
	}
	for count := range int64(3) { // the server may not know the script of the first one
		t.acked(drv, key, max(want, 1), within, count+1, want)
	}
	t.OK(wantEcho(t, drv, script(`return {KEYS[1], ARGV[1]}`), t.Key(), "behind it"), "Eval behind a WAIT")
}

// replicated starts a server with a replica.
func (t *caseT) replicated() (replica *redistest.Server) {
	t.Helper()
	t.Server = suite.StartReal(t.TB, redistest.Options{})
	return redistest.StartReplica(t.TB, t.Server.Real, t.Server.Real.Addr())
}

// vain is the time of an unanswered WAIT.
const vain = 100 * time.Millisecond

func frozenReplicaAcksNothing(t *caseT) {
	replica := t.replicated()
	drv, key := t.Driver(), t.Key()
	t.acked(drv, key, 1, t.Limit, 1, 1)
	t.OK(replica.Freeze(), "freeze the replica")
	t.acked(drv, key, 1, vain, 2, 0)
	t.acked(t.Driver(), key, 1, vain, 3, 0) // over connections without a write
	t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "FLUSH"), "SCRIPT FLUSH")
	t.acked(drv, key, 1, vain, 4, 0)
	t.OK(replica.Thaw(), "let the replica go on")
	t.acked(drv, key, 1, t.Limit, 5, 1)
	// the only replica acknowledges this write before the next
	two := suite.Background(func() error {
		_, acked, err := drv.EvalAcked(t.Ctx, countScript, []string{key}, nil, 2, t.Limit)
		if err == nil && acked != 1 {
			err = fmt.Errorf("%d replicas acknowledged, want 1", acked)
		}
		return err
	})
	t.Eventually("the script runs", func() bool { v, _ := t.Stored(key); return v == "6" })
	t.acked(t.Driver(), key, 1, t.Limit, 7, 1)
	t.endWaits(t.Server.Real)
	t.OK(t.Result(two, "EvalAcked"), "EvalAcked of two replicas")
}

// endWaits ends each WAIT at a server as if its time were over, now and until the case ends.
func (t *caseT) endWaits(s *redistest.Server) {
	ctx, cancel := context.WithCancel(t.Ctx)
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			list, _ := s.Do(ctx, "CLIENT", "LIST")
			for line := range strings.Lines(fmt.Sprint(list)) {
				if id, rest, _ := strings.Cut(line, " "); strings.Contains(rest, " cmd=wait ") {
					_, _ = s.Do(ctx, "CLIENT", "UNBLOCK", strings.TrimPrefix(id, "id=")) // it may be over by now
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(suite.PollEvery):
			}
		}
	}()
}

func waitDelaysNobody(t *caseT) {
	replica := t.replicated()
	drv := t.Driver()
	t.acked(drv, t.Key(), 1, t.Limit, 1, 1)
	for range 100 { // an adapter may begin to share connections only then
		t.warm(drv, countScript)
	}
	t.OK(replica.Freeze(), "freeze the replica")
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	waits := make([]<-chan error, 4)
	key := t.Key()
	for i := range waits {
		waits[i] = suite.Background(func() error {
			_, _, err := drv.EvalAcked(ctx, countScript, []string{key}, nil, 1, t.Limit)
			return err
		})
	}
	t.Eventually("all of them wait", func() bool { v, _ := t.Stored(key); return v == "4" })
	t.Promptly("other commands", func() {
		for range 20 {
			t.warm(drv, countScript)
			_, err := drv.SetNX(t.Ctx, t.Key(), "v", time.Minute)
			t.OK(err, "SetNX while others WAIT")
		}
	})
	for _, w := range waits {
		select {
		case err := <-w:
			t.Errorf("a WAIT was over before its time: %v", err)
		default:
		}
	}
	cancel()
	for _, w := range waits {
		t.Is(t.Result(w, "EvalAcked"), context.Canceled, "EvalAcked that was cancelled")
	}
	t.OK(replica.Thaw(), "let the replica go on")
}

// ackedThrough increments a counter with a WAIT behind it, through a fault, and cancels the call
// after a silence.
func (t *caseT) ackedThrough(trap *faultproxy.Trap, drv driver.Driver, key string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	result := suite.Background(func() error {
		_, _, err := drv.EvalAcked(ctx, countScript, []string{key}, nil, 1, time.Millisecond)
		return err
	})
	t.Event(trap.Hit(), "the fault happens")
	t.Pause(silence)
	cancel()
	return t.Result(result, "EvalAcked through a fault")
}

func scriptWithWaitIsSentOnce(t *caseT) {
	for _, fault := range []faultproxy.Fault{faultproxy.DropReply, faultproxy.Cut, faultproxy.CutBefore} {
		p, drv := t.Proxied()
		t.acked(drv, t.Key(), 1, time.Millisecond, 1, 0)
		key := t.Key()
		trap := p.Fail(key, fault)
		err := t.ackedThrough(trap, drv, key)
		t.unknown(err, "EvalAcked whose reply is lost")
		t.SentOnce(p, key, "EvalAcked")
		want := 1
		if fault == faultproxy.CutBefore {
			want = 0
		}
		eval.mustRun(t, key, want)
	}
}

func lostAckLeavesUnknown(t *caseT) {
	for _, fault := range []faultproxy.Fault{faultproxy.DropReply, faultproxy.Cut} {
		p, drv := t.Proxied()
		t.acked(drv, t.Key(), 1, time.Millisecond, 1, 0)
		key := t.Key()
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("WAIT"), Fault: fault})
		err := t.ackedThrough(trap, drv, key)
		t.unknown(err, "EvalAcked whose WAIT has no answer")
		t.SentOnce(p, key, "EvalAcked")
		eval.mustRun(t, key, 1)
		t.Eventually("it works again", func() bool {
			_, _, err := drv.EvalAcked(t.Ctx, countScript, []string{t.Key()}, nil, 1, time.Millisecond)
			return err == nil
		})
	}
}

func waitObeysItsContext(t *caseT) {
	p, drv := t.Proxied()
	t.acked(drv, t.Key(), 1, time.Millisecond, 1, 0)
	over, cancel := context.WithCancel(t.Ctx)
	cancel()
	_, _, err := drv.EvalAcked(over, countScript, []string{t.Key()}, nil, 1, time.Millisecond)
	t.Is(err, driver.ErrNotSent, "EvalAcked under an ended context")
	for want, newContext := range endings {
		if !t.endsHere(want) {
			continue
		}
		key := t.Key()
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("WAIT"), Fault: faultproxy.Stall})
		ctx, stop := newContext(t, trap.Hit())
		err := t.Call("EvalAcked whose WAIT is withheld", func() error {
			_, _, err := drv.EvalAcked(ctx, countScript, []string{key}, nil, 1, time.Millisecond)
			return err
		})
		stop()
		t.Event(trap.Hit(), "the WAIT is withheld")
		t.Is(err, want, "EvalAcked whose WAIT is withheld")
		t.unknown(err, "EvalAcked whose WAIT is withheld")
		trap.Release()
		for i := range 5 {
			t.OK(wantEcho(t, drv, script(`return {KEYS[1], ARGV[1]}`), t.Key(), string(rune('a'+i))),
				"Eval behind a late WAIT")
		}
		eval.mustRun(t, key, 1)
	}
}

func refusedWaitIsReported(t *caseT) {
	drv, key := t.Dial(t.User("u"+t.Key(), "~*", "&*", "+@all", "-wait")), t.Key()
	for range 2 {
		_, _, err := drv.EvalAcked(t.Ctx, countScript, []string{key}, nil, 1, time.Millisecond)
		if !driver.WaitRefused(err) || driver.NotExecuted(err) || driver.Transient(err) {
			t.Errorf("got error %v, want one that says that WAIT is refused for good, and nothing of the script", err)
		}
	}
	eval.mustRun(t, key, 2)
	_, err := drv.SetNX(t.Ctx, t.Key(), "v", time.Minute)
	t.OK(err, "SetNX behind it")
}

func refusedScriptHasNoAck(t *caseT) {
	drv, key := t.Driver(), t.Key()
	failing := script(`return redis.error_reply('MYCODE of ' .. KEYS[1])`)
	for i := range 5 {
		_, acked, err := drv.EvalAcked(t.Ctx, failing, []string{key}, nil, 1, time.Millisecond)
		t.refused(err, "MYCODE of "+key, "a failing script")
		if acked != 0 || errors.As(err, new(*driver.WaitError)) {
			t.Errorf("a failing script was acknowledged %d times, with %v", acked, err)
		}
		t.acked(drv, t.Key(), 1, time.Millisecond, 1, 0)
		t.OK(wantEcho(t, drv, script(`return {KEYS[1], ARGV[1]}`), key, string(rune('a'+i))), "Eval behind it")
	}
}

func waitFollowsItsScript(t *caseT) {
	cluster := t.Server.Cluster
	nodes := cluster.Nodes()
	_, err := cluster.AddReplica(t.Ctx, nodes[0])
	t.OK(err, "add a replica to the first node")
	for _, node := range nodes[1:] { // without a replica a WAIT takes all its time
		t.endWaits(node)
	}
	drv := t.Driver()
	for _, move := range []struct {
		from, to  *redistest.Server
		was, acks int
	}{{nodes[0], nodes[1], 1, 0}, {nodes[1], nodes[0], 0, 1}} {
		key := t.keyAt(move.from, true)
		t.acked(drv, key, 1, t.Limit, 1, move.was)
		t.OK(cluster.MoveSlot(t.Ctx, redistest.Slot(key), move.to), "move a slot")
		t.acked(drv, key, 1, t.Limit, 2, move.acks)
		t.acked(t.Driver(), key, 1, t.Limit, 3, move.acks)

		tag := "{" + t.keyAt(move.from, true) + "}"
		stays, moves := tag+"stays", tag+"moves"
		for _, key := range []string{stays, moves} {
			t.acked(drv, key, 1, t.Limit, 1, move.was)
		}
		moving, err := cluster.BeginMove(t.Ctx, redistest.Slot(tag), move.to)
		t.OK(err, "begin to move a slot")
		t.OK(moving.Migrate(t.Ctx, moves), "migrate one key")
		t.acked(drv, moves, 1, t.Limit, 2, move.acks)
		t.acked(drv, stays, 1, t.Limit, 2, move.was)
		t.OK(moving.Finish(t.Ctx), "finish the move")
		t.acked(drv, stays, 1, t.Limit, 3, move.acks)
	}
}
