package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// trouble is a fault that must not spread. An effect on other clients is a violation. These
// bystanders share drivers, watchdog and network with the clients in trouble.
type trouble struct {
	fault
	recovery time.Duration // until the rates must be back

	frozen   *redistest.Server // nil: none
	from, to int64             // when it began and ended
}

// troubles are the choices of planTrouble.
var troubles = []trouble{
	{fault: frozenServer, recovery: 12 * time.Second},
	{fault: impatientCallers, recovery: 2 * time.Second},
	{fault: blockedLog, recovery: 2 * time.Second},
}

const (
	calmTime    = 4 * time.Second // before the trouble
	troubleTime = 4 * time.Second
	afterTime   = 4 * time.Second // after the recovery
	// distance is the added round trip to each server. It makes the rate of the cyclers depend on
	// latency and not on the machine. Quorums get less, because they wait for a node for a tenth of
	// the TTL only; their cyclers pause instead.
	distance       = 40 * time.Millisecond
	quorumDistance = 4 * time.Millisecond
	quorumRest     = 100 * time.Millisecond

	troubleProcess = 0 // the process of the trouble and its bystanders
	// In this process, for each provider.
	cyclersEach = 32
	holdersEach = 20
	talkersEach = 20 // more than a watchdog renews at once
	ofQuorum    = 4  // at a quorum, numbers are divided by this: a lock needs several servers
)

// length is how long a round with the trouble takes.
func (t *trouble) length() time.Duration { return calmTime + troubleTime + t.recovery + afterTime }

// planTrouble makes this a round with one trouble, picked at random, if the deployment and the time
// allow for it.
func (r *round) planTrouble(left time.Duration) bool {
	t := r.troubles[r.random.IntN(len(r.troubles))]
	kinds := r.suiting(r.deployment)
	i := slices.IndexFunc(kinds, func(kind string) bool { return kind == "single" || kind == "redlock-single" })
	if left < t.length() || !proxied(r.deployment) || !t.at(r.deployment) || i < 0 {
		return false
	}
	r.trouble, r.name, r.length = &t, "beside "+t.kind, t.length()
	if r.linger = rest; !t.brief {
		r.linger += troubleTime
	}
	for _, g := range []struct {
		as   role
		each int // of each provider
	}{{impatient, 1}, {holder, holdersEach}, {cycler, cyclersEach}, {talker, talkersEach}, {pinger, mastersOf}} {
		if strategies[kinds[i]].quorum && g.as != pinger {
			g.each = max(g.each/ofQuorum, 1)
		}
		r.beside = append(r.beside, r.group(kinds[i], string(g.as), g.as, g.each*providers))
	}
	return true
}

// make causes the trouble at its time.
func (t *trouble) make(ctx context.Context, r *round) error {
	d := &disturber{r, rand.New(rand.NewPCG(r.random.Uint64(), 0))}
	if !pause(ctx, time.Duration(r.task.Start-r.rec.Now())+calmTime) {
		return nil
	}
	t.from = r.rec.Now()
	err := t.do(ctx, d)
	t.to = r.rec.Now()
	d.rec.Note(t.kind, t.from, t.to)
	d.checker.fault(r.name)
	return err
}

// distance is the round trip to each server.
func (r *round) distance() time.Duration {
	if len(r.deployment.targets(troubleProcess)) > 1 {
		return quorumDistance
	}
	return distance
}

// spared reports whether the server of a name was not frozen.
func (t *trouble) spared(s *deployment, name string) bool {
	return t.frozen == nil || len(s.targets(0)) > 1 || s.cluster != nil && s.cluster.NodeForKey(name) != t.frozen
}

// containment returns the criteria for the bystanders of the round.
func (r *round) containment() containment {
	t := r.trouble
	return containment{
		start: r.task.Start, from: t.from, to: t.to, end: r.task.End, recovery: t.recovery,
		distance: r.distance(), servers: len(slices.Concat(r.deployment.targets(troubleProcess)...)),
		spared: func(name string) bool { return t.spared(r.deployment, name) },
		role: func(name string) role {
			of, _, _ := strings.Cut(name, ".")
			return r.beside[slices.IndexFunc(r.beside, func(g group) bool { return g.Name == of })].Role
		},
	}
}

// splitBystanders splits the events of bystanders from the others.
func (r *round) splitBystanders(events []history.Event) (bystanders, others []history.Event) {
	mine := map[string]bool{}
	for _, g := range r.beside {
		mine[g.Name] = g.Role == holder || g.Role == cycler || g.Role == pinger
	}
	for _, e := range events {
		if of, _, _ := strings.Cut(e.Name, "."); mine[of] {
			bystanders = append(bystanders, e)
		} else {
			others = append(others, e)
		}
	}
	return bystanders, others
}

// containment has the criteria for the bystanders of a trouble. Times are on the common clock.
type containment struct {
	start, from, to, end int64 // of the clients' work, and of the trouble in it
	recovery             time.Duration
	distance             time.Duration
	servers              int                    // used by pingers in turn
	spared               func(name string) bool // its server was not frozen
	role                 func(name string) role
}

const (
	// warmUp is the time for connecting, and for calls in flight when the trouble begins.
	warmUp = int64(time.Second)
	// slack is the time for late renewals.
	slack = 2 * time.Second
	// The required fraction of a provider's rate: at healthy servers during the trouble, and at all
	// servers after the recovery.
	keptDuring = 0.5
	keptAfter  = 0.6
	// The excess of pings over the distance, in the worst second, on a machine too busy to judge
	// rates, or anything.
	lagOfRates = 20 * time.Millisecond
	lagOfAll   = 200 * time.Millisecond
)

// check returns complaints about bystanders. busy: the machine was too busy to judge rates.
func (c containment) check(events []history.Event) (complaints []string, busy bool) {
	switch lag := c.lag(events); {
	case lag > lagOfAll:
		return nil, true
	case lag > lagOfRates:
		return c.suffered(events), true
	}
	return append(c.suffered(events), c.slowed(events)...), false
}

// suffered lists bystanders' lost locks and errors.
func (c containment) suffered(events []history.Event) (complaints []string) {
	ttl := map[string]time.Duration{}
	for _, e := range events {
		if e.Kind == history.Acquire {
			ttl[e.Hold] = e.TTL
		}
	}
	for _, e := range events {
		switch e.Outcome {
		case history.OK:
			continue
		case history.Lost:
			if !c.spared(e.Name) && ttl[e.Hold]*2/3 < time.Duration(c.to-c.from)+slack {
				continue // it cannot be renewed during the trouble
			}
		default:
			if e.Return < c.start+warmUp || !c.spared(e.Name) && c.from <= e.Return && e.Call <= c.to+int64(c.recovery) {
				continue
			}
		}
		complaints = append(complaints, fmt.Sprintf("%s of %s by %s, TTL %v, at %v: %s: %s",
			e.Kind, e.Name, providerOf(e.Client), ttl[e.Hold], time.Duration(e.Return-c.start), e.Outcome, e.Error))
	}
	return complaints
}

// lag is how much longer than the distance pings took, in the worst second.
func (c containment) lag(events []history.Event) (most time.Duration) {
	pings := slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return c.role(e.Name) != pinger })
	for from := c.start + warmUp; from+warmUp <= c.end; from += warmUp {
		most = max(most, c.pinged(pings, from, from+warmUp)-c.distance)
	}
	return most
}

// pinged returns how long pings took in a time, at the fastest server: another may be frozen.
func (c containment) pinged(pings []history.Event, from, to int64) time.Duration {
	least := time.Duration(math.MaxInt64)
	for server := range c.servers {
		var n, sum int64
		for _, e := range pings {
			if e.Client%c.servers == server && from <= e.Return && e.Return < to {
				n, sum = n+1, sum+e.Return-e.Call
			}
		}
		if n > 0 {
			least = min(least, time.Duration(sum/n))
		}
	}
	return least
}

// slowed returns a complaint for each rate that fell.
func (c containment) slowed(events []history.Event) (complaints []string) {
	before := c.rates(events, c.start+warmUp, c.from)
	during, after := c.rates(events, c.from+warmUp/2, c.to), c.rates(events, c.to+int64(c.recovery), c.end)
	for _, l := range slices.SortedFunc(maps.Keys(before), lot.compare) {
		check := func(when string, rate, kept float64) {
			if rate < kept*before[l] {
				complaints = append(complaints, fmt.Sprintf(
					"%v: each acquires %.2f times a second %s, %.2f before", l, rate, when, before[l]))
			}
		}
		if l.spared {
			check("during the trouble", during[l], keptDuring)
		}
		check("after it", after[l], keptAfter)
	}
	return complaints
}

// lot is a set of cyclers with the same provider and kind of server.
type lot struct {
	provider int
	spared   bool
}

func (l lot) compare(m lot) int { return cmp.Compare(l.String(), m.String()) }

// String implements fmt.Stringer.
func (l lot) String() string {
	return fmt.Sprintf("%s, spared: %v", providerOf(l.provider), l.spared)
}

// rates are how often the cyclers of each lot acquire in a time: each of them, in a second.
func (c containment) rates(events []history.Event, from, to int64) map[lot]float64 {
	acquires, cyclers := map[lot]float64{}, map[lot]map[int]bool{}
	for _, e := range events {
		if e.Kind != history.Acquire || c.role(e.Name) != cycler {
			continue
		}
		l := lot{e.Client % providers, c.spared(e.Name)}
		if cyclers[l] == nil {
			cyclers[l] = map[int]bool{}
		}
		cyclers[l][e.Client] = true
		if e.Outcome == history.OK && from <= e.Return && e.Return < to {
			acquires[l]++
		}
	}
	for l := range cyclers {
		acquires[l] /= float64(len(cyclers[l])) * time.Duration(to-from).Seconds()
	}
	return acquires
}

// providerOf returns a client's provider for the first server.
func providerOf(client int) string { return clients.All[client%providers].Name }
