package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var clusterCases = []testCase{
	{
		name: "every node is reached", on: suite.OnlyCluster,
		why: "names are spread over all slots, and a lock lives on its key's node",
		run: everyNodeIsReached,
	},
	{
		name: "keys of two slots are an error", on: suite.OnlyCluster,
		why: "a client that panics on them takes the program down",
		run: twoSlotsAreAnError,
	},
	{
		name: "a moved slot is followed", on: suite.OnlyCluster, own: true,
		why: "slots move while locks are held; MOVED proves that nothing ran, so the client may send again",
		run: movedSlotIsFollowed,
	},
	{
		name: "a moving slot is followed", on: suite.OnlyCluster, own: true,
		why: "while a slot moves, ASK sends single keys to the new node, and TRYAGAIN refuses several until they are together",
		run: movingSlotIsFollowed,
	},
	{
		name: "a lost reply after a redirection leaves the outcome unknown", on: suite.OnlyCluster,
		why: "MOVED and ASK speak for one node; a client that reports them denies what the next node ran",
		run: lostReplyAfterRedirection,
	},
	{
		name: "a dead node's successor is found", on: suite.OnlyCluster, own: true,
		why: "no node replies MOVED for a dead or frozen master: until the client refreshes its view, locks on it would be lost and none could be acquired",
		run: successorIsFound,
	},
	{
		name: "the driver tells keys of different nodes apart", on: suite.OnlyCluster,
		why: "renewals are bounded for each server: those to a silent node must not use up what others need",
		run: serversAreToldApart,
	},
	{
		name: "a silent node delays no answers to calls at the same time", on: suite.OnlyCluster, own: true,
		why: "renewals that are due together go to all nodes, and those that other nodes have answered must not count as unanswered",
		run: silentNodeAmongCalls,
	},
	{
		name: "a silent node delays no call to another", on: suite.OnlyCluster, own: true,
		why: "calls that wait for one node must not use up what calls to other nodes need, or their locks would be lost too",
		run: silentNodeDelaysNoOther,
	},
}

func everyNodeIsReached(t *caseT) {
	drv := t.Driver()
	reached := map[*redistest.Server]int{}
	for range 60 {
		key := t.Key()
		set, err := drv.SetNX(t.Ctx, key, "v", time.Minute)
		if !set || err != nil {
			t.Fatalf("SetNX: %v, %v", set, err)
		}
		reply, err := drv.Eval(t.Ctx, script(`return redis.call('GET', KEYS[1])`), []string{key}, nil)
		t.OK(err, "Eval")
		if v, _ := reply.Text(0); v != "v" {
			t.Fatalf("the script found %q, want %q", v, "v")
		}
		reached[t.Server.Cluster.NodeForKey(key)]++
	}
	if len(reached) != suite.ClusterSize {
		t.Errorf("60 keys lie on %d nodes, want %d", len(reached), suite.ClusterSize)
	}
}

func twoSlotsAreAnError(t *caseT) {
	drv, a, b := t.Driver(), t.Key(), t.Key()
	for redistest.Slot(a) == redistest.Slot(b) {
		b = t.Key()
	}
	_, err := drv.Eval(t.Ctx, countScript, []string{a, b}, nil)
	if err == nil {
		t.Errorf("a script over two slots returned no error")
	}
	if !driver.NotExecuted(err) || driver.Transient(err) {
		t.Errorf("a script over two slots: %v; want an error that reports that nothing ran, and that a resend is useless", err)
	}
	if t.Exists(a) || t.Exists(b) {
		t.Errorf("a script over two slots was executed")
	}
	t.Promptly("calls at the same time", t.begin(60, func(i int) {
		keys, twoSlots := []string{b}, i%3 == 1
		if twoSlots {
			keys = []string{a, b}
		}
		if _, err := drv.Eval(t.Ctx, countScript, keys, nil); (err != nil) != twoSlots {
			t.Errorf("call %d of many, over two slots: %v: %v", i, twoSlots, err)
		}
	}).Wait)
	_, err = drv.SetNX(t.Ctx, t.Key(), "v", time.Minute)
	t.OK(err, "SetNX afterwards")
}

func serversAreToldApart(t *caseT) {
	drv, key, other := t.Driver(), t.Key(), t.Key()
	for redistest.Slot(key) > 1000 { // at the first node
		key = t.Key()
	}
	for redistest.Slot(other) < 15_000 { // at the last
		other = t.Key()
	}
	t.Eventually("keys of two nodes are told apart", func() bool {
		t.warm(drv, countScript)
		return drv.Server(key) != drv.Server(other)
	})
	if tagged := "{" + key + "}"; drv.Server(tagged+"1") != drv.Server(tagged+"2") {
		t.Errorf("keys of one slot are said to be at two servers")
	}
}

// silentNodeAmongCalls freezes one node of three, makes calls to all of them at the same time, and
// demands the outcomes of those to the others.
func silentNodeAmongCalls(t *caseT) {
	const calls = 240
	drv, keys := t.Driver(), t.keys(2*calls)
	silent := t.Server.Cluster.Nodes()[1]
	count := func(ctx context.Context, key string, want int64) error {
		reply, err := drv.Eval(ctx, countScript, []string{key}, nil)
		if n, _ := reply.Int(0); err == nil && n != want {
			err = fmt.Errorf("the answer is %d, want %d", n, want)
		}
		return err
	}
	for n := range int64(2) {
		t.Promptly("the calls", t.begin(len(keys), func(i int) {
			if err := count(t.Ctx, keys[i], n+1); err != nil {
				t.Errorf("a call: %v", err)
			}
		}).Wait)
	}
	t.freezeNode(silent)
	parents := []context.Context{t.Ctx, context.Background()}
	t.Promptly("the calls to all nodes", t.begin(len(keys), func(i int) {
		ctx := bounded.New(parents[i/calls], 10*time.Second)
		defer ctx.Stop()
		err := count(ctx, keys[i], 3)
		if there := t.Server.Cluster.NodeForKey(keys[i]) == silent; (err != nil) != there {
			t.Errorf("a call, to the silent node: %v: %v", there, err)
		}
	}).Wait)
	t.OK(silent.Thaw(), "let the node go on")
}

// freezeNode freezes a node of the cluster. A long timeout keeps the others from taking it for dead.
func (t *caseT) freezeNode(node *redistest.Server) {
	t.Helper()
	t.OK(t.Server.EveryNode(t.Ctx, "CONFIG", "SET", "cluster-node-timeout", 600_000), "CONFIG SET")
	t.OK(node.Freeze(), "freeze a node")
}

// silentNodeDelaysNoOther freezes one node of three, makes many calls to it in each way to send,
// and demands that calls to the others are answered soon.
func silentNodeDelaysNoOther(t *caseT) {
	drv, silent := t.Driver(), t.Server.Cluster.Nodes()[1]
	ways := t.waysToSend()
	for name, send := range ways {
		for _, at := range []bool{true, false} {
			t.OK(send(t.Ctx, drv, t.keyAt(silent, at)), "%s at first", name)
		}
	}
	t.freezeNode(silent)
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	var calls sync.WaitGroup
	for _, send := range ways {
		for range 100 {
			key := t.keyAt(silent, true)
			calls.Go(func() {
				bound := bounded.New(ctx, time.Second) // the client learns of the silence
				_ = send(bound, drv, key)
				bound.Stop()
				_ = send(ctx, drv, key)
			})
		}
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		for name, send := range ways {
			bound := bounded.New(context.Background(), t.Limit)
			t.OK(send(bound, drv, t.keyAt(silent, false)), "%s to another node", name)
			bound.Stop()
		}
	}
	t.OK(silent.Thaw(), "let the node go on")
	cancel()
	t.Promptly("the calls to the silent node return", calls.Wait)
	for name, send := range ways {
		t.OK(send(t.Ctx, drv, t.keyAt(silent, true)), "%s when the node goes on", name)
	}
}

// waysToSend returns all ways of the driver to send a command about one key. They overwrite their
// slices at the end: the race detector reports late reads.
func (t *caseT) waysToSend() map[string]func(context.Context, driver.Driver, string) error {
	ways := map[string]func(context.Context, driver.Driver, string) error{setNX.name: setNX.send, eval.name: eval.send}
	if !t.Lacks(FeatureReplicas) {
		ways["EvalAcked"] = func(ctx context.Context, drv driver.Driver, key string) error {
			keys := []string{key}
			_, _, err := drv.EvalAcked(ctx, countScript, keys, nil, 1, vain)
			keys[0] = "overwritten"
			return err
		}
	}
	return ways
}

// successorIsFound kills a master with two replicas, then freezes its successor, and demands that
// each way to send reaches the next one. A frozen master still accepts connections.
func successorIsFound(t *caseT) {
	cluster := t.Server.Cluster
	first := cluster.Nodes()[0]
	second, err := cluster.AddReplica(t.Ctx, first)
	t.OK(err, "add a replica")
	_, err = cluster.AddReplica(t.Ctx, first)
	t.OK(err, "add another one")
	t.Limit *= 2 // a client may wait for its own timeouts first
	t.followsFailover(first, second, first.Kill, func() error { return first.Restart(t.Ctx) })
	third, err := cluster.Replica(t.Ctx, second)
	t.OK(err, "find a replica")
	t.followsFailover(second, third, second.Freeze, second.Thaw)
}

// followsFailover demands that each way to send reaches heir, a replica that takes over from master
// after end. restore brings the old master back.
func (t *caseT) followsFailover(master, heir *redistest.Server, end, restore func() error) {
	t.Helper()
	cluster := t.Server.Cluster
	ways := t.waysToSend()
	if !t.Lacks(FeatureReplicas) {
		ways["EvalAcked"] = func(ctx context.Context, drv driver.Driver, key string) error {
			_, _, err := drv.EvalAcked(ctx, countScript, []string{key}, nil, 1, vain)
			return err // whether a replica has followed the new master is the servers' affair
		}
	}
	drivers := map[string]driver.Driver{} // one for each way: none learns from another
	for name, send := range ways {
		drivers[name] = t.Driver()
		t.Eventually(name+" works before the failover",
			func() bool { return send(t.Ctx, drivers[name], t.keyAt(master, true)) == nil })
	}
	t.OK(end(), "end a master")
	t.Eventually("a replica takes over", func() bool {
		_, err := heir.Do(t.Ctx, "CLUSTER", "FAILOVER", "TAKEOVER")
		return err == nil && cluster.WaitMaster(t.Ctx, heir) == nil
	})
	t.Eventually("each way to send reaches it", func() bool {
		maps.DeleteFunc(ways, func(name string, send func(context.Context, driver.Driver, string) error) bool {
			ctx := bounded.New(t.Ctx, 10*time.Second)
			defer ctx.Stop()
			err := send(ctx, drivers[name], t.keyAt(master, true))
			if err != nil {
				t.Logf("%s: %v", name, err)
			}
			return err == nil
		})
		return len(ways) == 0
	})
	t.OK(restore(), "bring the old master back")
	t.OK(cluster.WaitMasters(t.Ctx), "end the failover")
}

// keyAt returns a key of node, or one of the other nodes.
func (t *caseT) keyAt(node *redistest.Server, there bool) string {
	for {
		if key := t.Key(); (t.Server.Cluster.NodeForKey(key) == node) == there {
			return key
		}
	}
}

// otherNode returns a node that does not own key.
func (t *caseT) otherNode(key string) *redistest.Server {
	nodes := t.Server.Cluster.Nodes()
	if nodes[0] == t.Server.Cluster.NodeForKey(key) {
		return nodes[1]
	}
	return nodes[0]
}

func movedSlotIsFollowed(t *caseT) {
	drv := t.Driver()
	for _, c := range commands {
		key := t.Key()
		t.OK(c.send(t.Ctx, drv, key), "%s before the move", c.name)
		slot := redistest.Slot(key)
		t.OK(t.Server.Cluster.MoveSlot(t.Ctx, slot, t.otherNode(key)), "move slot %d", slot)
		t.OK(c.send(t.Ctx, drv, key), "%s after the move", c.name)
		want := map[string]int{"SetNX": 1, "Eval": 2}[c.name]
		c.mustRun(t, key, want)
	}
}

func movingSlotIsFollowed(t *caseT) {
	drv, tag := t.Driver(), "{"+t.Key()+"}"
	stays, moves, absent, absent2 := tag+"stays", tag+"moves", tag+"absent", tag+"absent2"
	for _, key := range []string{stays, moves} {
		_, err := drv.Eval(t.Ctx, countScript, []string{key}, nil)
		t.OK(err, "Eval before the move")
	}
	move, err := t.Server.Cluster.BeginMove(t.Ctx, redistest.Slot(tag), t.otherNode(tag))
	t.OK(err, "begin to move the slot")
	t.OK(move.Migrate(t.Ctx, moves), "migrate one key")

	for key, want := range map[string]int64{stays: 2, moves: 2, absent: 1} {
		reply, err := drv.Eval(t.Ctx, countScript, []string{key}, nil)
		t.OK(err, "Eval over one key of the moving slot")
		if n, err := reply.Int(0); n != want || err != nil {
			t.Errorf("%s: the counter is at %d (%v), want %d", key, n, err, want)
		}
	}
	set, err := drv.SetNX(t.Ctx, absent2, "v", time.Minute)
	if !set || err != nil {
		t.Errorf("SetNX of an absent key of the moving slot: %v, %v", set, err)
	}
	set, err = drv.SetNX(t.Ctx, moves, "v", time.Minute)
	if set || err != nil {
		t.Errorf("SetNX of a migrated, taken key: %v, %v; want false and no error", set, err)
	}

	both := script(`redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])`)
	ctx, cancel := context.WithTimeout(t.Ctx, time.Second)
	defer cancel()
	_, err = drv.Eval(ctx, both, []string{stays, moves}, nil)
	// After TRYAGAIN nothing ran: a client may resend until its context ends.
	if code := driver.CodeOf(err); code != "TRYAGAIN" && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Eval over two keys that are apart: %v, want TRYAGAIN", err)
	}
	t.OK(move.Finish(t.Ctx), "finish the move")
	for _, key := range []string{stays, moves} {
		if v, _ := t.Stored(key); v != "2" {
			t.Errorf("%s is at %q, want %q: a refused script must not have run", key, v, "2")
		}
	}
	reply, err := drv.Eval(t.Ctx, both, []string{stays, moves}, nil)
	t.OK(err, "Eval over two keys after the move")
	if n, _ := reply.Int(0); n != 3 {
		t.Errorf("the counter is at %s, want 3", fmt.Sprint(n))
	}
}

// lostReplyAfterRedirection moves a slot to a node behind a proxy, makes calls to be redirected by
// the old node, and cuts their connections to the new one.
func lostReplyAfterRedirection(t *caseT) {
	var proxies sync.Map // by address
	cluster := redistest.StartCluster(t.TB, 2, redistest.Options{Announce: func(addr string) (int, error) {
		p, err := faultproxy.Listen(addr)
		if err != nil {
			return 0, err
		}
		t.Cleanup(p.Close)
		proxies.Store(p.Addr(), p)
		return p.Port(), nil
	}})
	t.Server = &suite.Server{Cluster: cluster, Target: suite.Target{Kind: Cluster, Addrs: cluster.Addrs()}}
	from, to := cluster.Nodes()[0], cluster.Nodes()[1]
	proxy, _ := proxies.Load(cluster.Addrs()[1])
	p := proxy.(*faultproxy.Proxy)
	drv := t.Driver()
	t.OK(t.Server.EveryNode(t.Ctx, "SCRIPT", "LOAD", countScript.Source()), "SCRIPT LOAD")
	for _, kind := range []string{"MOVED", "ASK"} {
		for _, node := range []*redistest.Server{from, to} {
			t.Eventually("a call works", func() bool { return eval.send(t.Ctx, drv, t.keyAt(node, true)) == nil })
		}
		tag, keys := t.keyAt(from, true), t.keys(100)
		for i, key := range keys {
			keys[i] = "{" + tag + "}" + key
		}
		move, err := cluster.BeginMove(t.Ctx, redistest.Slot(tag), to)
		t.OK(err, "begin to move the slot")
		if kind == "MOVED" {
			t.OK(move.Finish(t.Ctx), "move the slot")
		}
		answers := t.sendAndBreak(p, drv, keys, kind, faultproxy.Cut)
		t.OK(move.Finish(t.Ctx), "finish the move")
		t.consistent(p, keys, answers)
	}
}
