package drivertest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var sharded = []Feature{FeatureSubscribe, FeatureSharded}

var shardedCases = []testCase{
	{
		name: "sharded messages reach their subscription", on: suite.OnlyCluster, needs: sharded,
		why: "a release publishes by SPUBLISH to a waiter whose driver says that it listens to that",
		run: shardedMessagesArrive,
	},
	{
		name: "a sharded message concerns one node", on: suite.OnlyCluster, own: true, needs: sharded,
		why: "a message to every node for each release makes a cluster slower with each node that it gets",
		run: shardedMessageConcernsOneNode,
	},
	{
		name: "a moved slot takes its subscriptions along", on: suite.OnlyCluster, own: true, needs: sharded,
		why: "the old node ends sharded subscriptions, and clients do not all make them again: the waiters would never be woken",
		run: movedSlotTakesSubscriptions,
	},
	{
		name: "a new master gets the subscriptions", on: suite.OnlyCluster, own: true, needs: sharded,
		why: "a replica that has taken over knows no subscriptions; a master that became a replica keeps them, and counts no receivers elsewhere",
		run: newMasterGetsSubscriptions,
	},
	{
		name: "a cluster without sharded messages", on: suite.OnlyCluster, needs: subscribes,
		why: "servers before Redis 7.0 do not know SSUBSCRIBE; waiters must be woken there too",
		run: clusterWithoutShardedMessages,
	},
}

// shardedSubscription is a subscription to channel, in the slot of a key.
type shardedSubscription struct {
	t            *caseT
	drv          driver.Driver
	sub          driver.Subscription
	key, channel string
	master       *redistest.Server // node to publish at, around the driver; nil: a script does
}

// subscribeSharded subscribes to the channel of a lock. It returns nil if the servers do not know
// SSUBSCRIBE.
func (t *caseT) subscribeSharded(drv driver.Driver, key string) *shardedSubscription {
	t.Helper()
	channel, _ := sibling.Of(key, sibling.WakeSuffix)
	s := &shardedSubscription{t, drv, t.subscribe(drv, channel), key, channel, nil}
	want := driver.DeliverySharded
	if info, _ := t.Do(key, "COMMAND", "INFO", "SSUBSCRIBE").([]any); len(info) == 0 || info[0] == nil {
		want = driver.DeliveryPlain
	}
	t.Eventually(fmt.Sprint("Delivery after Subscribe is ", want), func() bool { return drv.Delivery(channel) == want })
	if want == driver.DeliveryPlain {
		return nil
	}
	return s
}

var shardPublishScript = script(`return redis.call('SPUBLISH', ARGV[1], '')`)

// publish lets a script publish by SPUBLISH, and returns the number of receivers; -1 if it fails.
func (s *shardedSubscription) publish() int64 {
	if s.master != nil {
		ctx := bounded.New(s.t.Ctx, time.Second)
		// as a waiter does: a client learns of a new master by it
		_, _ = s.drv.Eval(ctx, countScript, []string{s.key}, nil)
		ctx.Stop()
		if n, ok := s.master.MustCommand(s.t, "SPUBLISH", s.channel, "").(int64); ok {
			return n
		}
		return -1
	}
	ctx := bounded.New(s.t.Ctx, 10*time.Second)
	defer ctx.Stop()
	reply, err := s.drv.Eval(ctx, shardPublishScript, []string{s.key}, []string{s.channel})
	if err != nil {
		return -1
	}
	n, _ := reply.Int(0)
	return n
}

// arrives demands that messages reach the subscription, now or soon, and that Delivery is
// DeliverySharded.
func (s *shardedSubscription) arrives(what string) {
	s.t.Helper()
	s.t.Eventually("a message has a receiver "+what, func() bool { return s.publish() == 1 })
	s.t.Eventually("Delivery says so "+what, func() bool { return s.drv.Delivery(s.channel) == driver.DeliverySharded })
	s.t.Woken(s.sub, what)
	suite.Drain(s.sub)
	if n := s.publish(); n != 1 {
		s.t.Errorf("a message has %d receivers %s, want 1", n, what)
	}
	s.t.Woken(s.sub, what+" again")
}

func shardedMessagesArrive(t *caseT) {
	drv := t.Driver()
	var subs []*shardedSubscription
	for range 12 { // on several nodes
		s := t.subscribeSharded(drv, t.Key())
		if s == nil {
			return
		}
		subs = append(subs, s)
	}
	for _, s := range subs {
		if n := s.publish(); n != 1 {
			t.Errorf("SPUBLISH has %d receivers, want 1", n)
		}
		t.Woken(s.sub, "SPUBLISH")
	}
	for _, s := range subs {
		suite.Drain(s.sub)
		t.Do(s.key, "PUBLISH", s.channel, "")
		t.Woken(s.sub, "PUBLISH, as other programs do")
	}
	first := subs[0]
	second := t.subscribe(drv, first.channel)
	t.OK(first.sub.Close(), "Close of one listener")
	suite.Drain(second)
	if n := first.publish(); n != 1 {
		t.Errorf("SPUBLISH has %d receivers, want the listener that is left", n)
	}
	t.Woken(second, "the other listener closed")
	t.OK(second.Close(), "Close of the last listener")
	t.Eventually("SPUBLISH has no receiver", func() bool { return first.publish() == 0 })
	again := t.subscribeSharded(drv, first.key)
	again.arrives("subscribed again")
}

func shardedMessageConcernsOneNode(t *caseT) {
	drv := t.Driver()
	s := t.subscribeSharded(drv, t.Key())
	if s == nil {
		return
	}
	before := t.busMessages()
	for range 20 {
		s.publish()
	}
	s.arrives("after 20 messages")
	if n := t.busMessages() - before; n != 0 {
		t.Errorf("SPUBLISH made the nodes send %d messages to one another, want none", n)
	}
}

// busMessages returns how many published messages the nodes have sent to one another.
func (t *caseT) busMessages() (sum int) {
	t.Helper()
	for _, node := range t.Server.Cluster.Nodes() {
		info, _ := node.MustCommand(t, "CLUSTER", "INFO").(string)
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "cluster_stats_messages_publish_sent" || name == "cluster_stats_messages_publishshard_sent" {
				n, err := strconv.Atoi(value)
				t.OK(err, "%s", name)
				sum += n
			}
		}
	}
	return sum
}

func movedSlotTakesSubscriptions(t *caseT) {
	drv, cluster := t.Driver(), t.Server.Cluster
	key := t.Key()
	s := t.subscribeSharded(drv, key)
	if s == nil {
		return
	}
	home := cluster.NodeForKey(key)
	stays := t.subscribeSharded(drv, t.keyAt(home, true)) // over the same connection
	slot := redistest.Slot(key)
	for i, node := range cluster.Nodes() {
		if node == home {
			continue
		}
		suite.Drain(s.sub)
		t.OK(cluster.MoveSlot(t.Ctx, slot, node), "move the slot")
		t.Woken(s.sub, fmt.Sprintf("its slot has moved to node %d", i))
		s.arrives("after the move")
	}
	suite.Drain(s.sub)
	t.OK(cluster.MoveSlot(t.Ctx, slot, home), "move the slot back")
	t.Woken(s.sub, "its slot has moved back")
	s.arrives("back at the first node")
	stays.arrives("in a slot that stays")
}

func newMasterGetsSubscriptions(t *caseT) {
	drv, cluster := t.Driver(), t.Server.Cluster
	master := cluster.Nodes()[0]
	heir, err := cluster.AddReplica(t.Ctx, master)
	t.OK(err, "add a replica")
	s := t.subscribeSharded(drv, t.keyAt(master, true))
	if s == nil {
		return
	}
	suite.Drain(s.sub)
	t.OK(cluster.Failover(t.Ctx, heir), "let the replica take over")
	s.master = heir // a client may take long to find it
	s.arrives("at the new master")

	suite.Drain(s.sub)
	t.OK(heir.Kill(), "end the new master")
	t.Eventually("the old one takes over", func() bool {
		_, err := master.Do(t.Ctx, "CLUSTER", "FAILOVER", "TAKEOVER")
		return err == nil && cluster.WaitMaster(t.Ctx, master) == nil
	})
	t.Woken(s.sub, "its master was ended")
	s.master = master
	s.arrives("at the first master")
	t.OK(heir.Restart(t.Ctx), "start the other one")
	t.OK(cluster.WaitMasters(t.Ctx), "end the failover")
}

func clusterWithoutShardedMessages(t *caseT) {
	old := redistest.StartCluster(t.TB, suite.ClusterSize,
		redistest.Options{Args: []string{"--rename-command", "SSUBSCRIBE", ""}})
	t.Server = &suite.Server{Cluster: old, Target: suite.Target{Kind: Cluster, Addrs: old.Addrs()}}
	drv := t.Driver()
	for range 3 {
		key := t.Key()
		if s := t.subscribeSharded(drv, key); s != nil {
			t.Fatalf("Delivery is %d where the server does not know SSUBSCRIBE", driver.DeliverySharded)
		}
		channel := t.Key()
		sub := t.subscribe(drv, channel)
		t.Do(channel, "PUBLISH", channel, "")
		t.Woken(sub, "PUBLISH")
	}
}
