package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/reliability/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The clock of the histories written here counts in units; leases last 100, and all is gone 50
// later.
const (
	ttl    = 100
	linger = 50
)

// script writes a history by hand.
type script struct{ events []history.Event }

func (s *script) add(e history.Event) *script {
	e.Name = "n"
	e.ID = fmt.Sprintf("e%d", len(s.events))
	s.events = append(s.events, e)
	return s
}

func client(hold string) int { return int(hold[0] - 'a') }

type edit func(*history.Event)

func fence(f int64) edit       { return func(e *history.Event) { e.Fence = f } }
func owner(o string) edit      { return func(e *history.Event) { e.Owner = o } }
func deadline(at int64) edit   { return func(e *history.Event) { e.Deadline = at } }
func shared(e *history.Event)  { e.Shared = true }
func noWait(e *history.Event)  { e.NoWait = true }
func lost(e *history.Event)    { e.Outcome = history.Lost }
func refused(e *history.Event) { e.Outcome = history.Refused }
func failed(e *history.Event)  { e.Outcome = history.Failed }
func open(e *history.Event)    { e.Open = true }
func resent(e *history.Event)  { e.Resent = true }
func unknown(e *history.Event) { e.Outcome = history.Unsettled }

// call is a call about a hold, named by a letter, its client's, and perhaps more.
func (s *script) call(kind history.Kind, hold string, from, to int64, edits ...edit) *script {
	e := history.Event{Kind: kind, Hold: hold, Owner: hold, Client: client(hold), Call: from, Return: to, Outcome: history.OK}
	for _, edit := range edits {
		edit(&e)
	}
	return s.add(e)
}

func (s *script) acquire(hold string, from, to int64, edits ...edit) *script {
	promise := func(e *history.Event) { e.TTL, e.Deadline = ttl, from+ttl }
	return s.call(history.Acquire, hold, from, to, append([]edit{promise}, edits...)...)
}

func (s *script) refuse(hold string, from, to int64, edits ...edit) *script {
	e := append([]edit{deadline(0), refused}, edits...)
	return s.acquire(hold, from, to, e...)
}

func (s *script) renew(hold string, from, to int64, edits ...edit) *script {
	promise := func(e *history.Event) {
		if e.TTL = ttl; e.Outcome == history.OK {
			e.Deadline = from + ttl
		}
	}
	return s.call(history.Renew, hold, from, to, append(edits, promise)...)
}

func (s *script) release(hold string, from, to int64, edits ...edit) *script {
	return s.call(history.Release, hold, from, to, edits...)
}

// leave lets a lease end.
func (s *script) leave(hold string, at int64) *script {
	return s.call(history.Abandon, hold, at, at)
}

func (s *script) held(hold string, at int64, edits ...edit) *script {
	return s.call(history.Held, hold, at, at, edits...)
}

func (s *script) write(hold string, at, f int64, edits ...edit) *script {
	return s.call(history.Write, hold, at, at, append([]edit{fence(f)}, edits...)...)
}

func (s *script) lose(from, to int64) *script {
	return s.add(history.Event{Kind: history.Lose, Outcome: history.OK, Call: from, Return: to, Client: -1})
}

func begin() *script { return &script{} }

type example struct {
	name string
	s    *script
	want history.Verdict
}

func judge(t *testing.T, r history.Rules, examples []example) {
	t.Helper()
	r.Linger = linger
	for _, ex := range examples {
		t.Run(strings.ReplaceAll(ex.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			res := history.Check(history.Settle(ex.s.events, 1000), r, time.Minute)
			check.Equal(t, "verdict: "+res.Reason, res.Verdict, ex.want)
			check.Equal(t, "has a reason", res.Reason != "", ex.want == history.Violation)
		})
	}
}

const (
	kept   = history.Kept
	broken = history.Violation
	loss   = history.Loss
)

func TestExclusive(t *testing.T) {
	t.Parallel()
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"one after another", begin().acquire("a", 0, 2).release("a", 5, 7).acquire("b", 8, 9), kept},
		{"while a release is under way", begin().acquire("a", 0, 2).release("a", 5, 20).acquire("b", 8, 9), kept},
		{"two hold", begin().acquire("a", 0, 2).acquire("b", 8, 9), broken},
		{"two acquire at once", begin().acquire("a", 0, 9).acquire("b", 1, 8), broken},
		{"after the deadline", begin().acquire("a", 0, 2).acquire("b", 99, 101), kept},
		{"just before the deadline", begin().acquire("a", 0, 2).acquire("b", 95, 99), broken},
		{"after a renewal's deadline", begin().acquire("a", 0, 2).renew("a", 50, 52).acquire("b", 149, 151), kept},
		{"before a renewal's deadline", begin().acquire("a", 0, 2).renew("a", 50, 52).acquire("b", 120, 130), broken},
		{"before a deadline that was only seen", begin().acquire("a", 0, 2).held("a", 60, deadline(160)).acquire("b", 120, 130), broken},
		{"a renewal without an answer promises nothing", begin().acquire("a", 0, 2).renew("a", 50, 52, unknown).acquire("b", 120, 130), kept},
		{"held after another acquired", begin().acquire("a", 0, 2).release("a", 3, 60).acquire("b", 8, 9).held("a", 10), broken},
		{"held while released", begin().acquire("a", 0, 2).release("a", 3, 4).held("a", 10), broken},
		{"a renewal after the release", begin().acquire("b", 0, 2).release("b", 3, 4).renew("b", 10, 12), broken},
		{"lost before the deadline", begin().acquire("a", 0, 2).renew("a", 50, 52, lost), broken},
		{"lost after the deadline", begin().acquire("a", 0, 2).renew("a", 98, 101, lost), kept},
		{"a release finds nothing before the deadline", begin().acquire("a", 0, 2).release("a", 50, 52, lost), broken},
		{"a release finds nothing after the deadline", begin().acquire("a", 0, 2).release("a", 50, 101, lost), kept},
		{"a release without an answer", begin().acquire("a", 0, 2).release("a", 5, 7, unknown).acquire("b", 8, 9), kept},
		{"a release without an answer, done late", begin().acquire("a", 0, 2).release("a", 5, 7, unknown).refuse("c", 40, 42).acquire("b", 48, 49), kept},
	})
}

// A free lock may be kept for a waiter woken by a release.
func TestKeptForAWaiter(t *testing.T) {
	t.Parallel()
	freed := func() *script { return begin().acquire("a", 0, 2).refuse("c", 1, 30).release("a", 10, 12) }
	r := history.Rules{Model: history.Exclusive, Woken: 20}
	judge(t, r, []example{
		{"while one waits", freed().refuse("b", 20, 21), kept},
		{"a moment after one waited", freed().refuse("b", 49, 51), kept},
		{"long after one waited", freed().refuse("b", 55, 56), broken},
		{"one that does not wait", freed().refuse("b", 20, 21, noWait), broken},
		{"while one asks that does not wait", begin().acquire("a", 0, 2).release("a", 10, 12).refuse("c", 11, 40, noWait).refuse("b", 30, 31), broken},
	})
	r.Fair = true
	judge(t, r, []example{
		{"one that does not wait, in a strict order", freed().refuse("b", 20, 21, noWait), kept},
		{"long after one waited, in a strict order", freed().refuse("b", 55, 56, noWait), broken},
	})
}

// Some answers are wrong whatever else happened.
func TestWords(t *testing.T) {
	t.Parallel()
	asked := func(ttl, until time.Duration) edit {
		return func(e *history.Event) { e.TTL, e.Deadline = ttl, int64(until) }
	}
	fenced := func(e *history.Event) { e.Fenced = true }
	before := func(at int64) edit { return func(e *history.Event) { e.Before = at } }
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"a lease less the drift", begin().acquire("a", 0, 2, asked(time.Second, 988*time.Millisecond)), kept},
		{"a lease shorter than that", begin().acquire("a", 0, 2, asked(time.Second, 987*time.Millisecond)), broken},
		{"a renewal that promises nothing", begin().acquire("a", 0, 2).call(history.Renew, "a", 50, 52, asked(time.Second, 100)), broken},
		{"a renewal that promises less than asked for", begin().acquire("a", 0, 2).call(history.Renew, "a", 50, 52, asked(time.Second, 900*time.Millisecond)), broken},
		{"a token that was asked for", begin().acquire("a", 0, 2, fenced, fence(5)), kept},
		{"no token although it was asked for", begin().acquire("a", 0, 2, fenced), broken},
		{"refused after the release", begin().acquire("a", 0, 2).release("a", 3, 4).refuse("b", 6, 7), broken},
		{"refused by what a wait left that ended during an attempt", begin().acquire("a", 0, 2).refuse("c", 1, 5, open).release("a", 3, 4).refuse("b", 6, 7), kept},
		{"refused by a wait that ended behind a refusal", begin().acquire("a", 0, 2).refuse("c", 1, 5).release("a", 3, 4).refuse("b", 6, 7), broken},
		{"no token of one that was refused", begin().acquire("a", 0, 2).refuse("b", 3, 4, fenced), kept},
		{"a renewal that revives", begin().acquire("a", 0, 2).renew("a", 130, 131, before(100)), broken},
		{"a renewal that revives behind a loss", begin().acquire("a", 0, 2).lose(50, 51).renew("a", 130, 131, before(100)), broken},
		{"a renewal in time", begin().acquire("a", 0, 2).renew("a", 99, 120, before(100)), kept},
		{"a renewal that shortens", begin().acquire("a", 0, 2).renew("a", 50, 52, before(300)), broken},
	})
	judge(t, history.Rules{Model: history.Exclusive, Crowd: true}, []example{
		{"a quorum's renewal that promises less than asked for", begin().acquire("a", 0, 2).call(history.Renew, "a", 50, 52, asked(time.Second, 900*time.Millisecond)), broken},
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"refused after a renewal that ended with the lease", begin().acquire("a", 0, 2).renew("a", 90, 100, lost).refuse("b", 130, 131), kept},
		{"refused after a release that ended behind the lease", begin().acquire("a", 0, 2).release("a", 90, 110, lost).refuse("b", 130, 131), kept},
		{"refused long after such a release", begin().acquire("a", 0, 2).release("a", 90, 110, lost).refuse("b", 400, 401), broken},
		{"while held", begin().acquire("a", 0, 2).refuse("b", 8, 9), kept},
		{"while somebody acquires", begin().acquire("a", 5, 10).refuse("b", 4, 6), kept},
		{"while free", begin().refuse("b", 8, 9), broken},
		{"after the release", begin().acquire("a", 0, 2).release("a", 3, 5).refuse("b", 8, 9), broken},
		{"a key that goes late", begin().acquire("a", 0, 2).leave("a", 100).refuse("b", 240, 249), kept},
		{"a key that stays", begin().acquire("a", 0, 2).leave("a", 100).refuse("b", 251, 259), broken},
		{"a key that stays after its client died", begin().acquire("a", 0, 2).renew("a", 90, 0, unknown, pending).refuse("b", 2000, 2001), broken},
		{"beside an acquire without an answer", begin().acquire("a", 0, 2, unknown).refuse("b", 8, 9), kept},
		{"long after an acquire without an answer", begin().acquire("a", 0, 2, unknown).refuse("b", 153, 155), broken},
		{"after one that was sent again", begin().acquire("a", 0, 40).release("a", 41, 42).refuse("b", 50, 51), kept},
		{"long after one that was sent again", begin().acquire("a", 0, 40).release("a", 41, 42).refuse("b", 191, 192), broken},
		{"after one answered too late", begin().acquire("a", 0, 2, lost).refuse("b", 50, 51), kept},
	})
	judge(t, history.Rules{Model: history.Exclusive, Resend: 5}, []example{
		{"after one that was sent again at once", begin().acquire("a", 0, 5).release("a", 6, 7).refuse("b", 50, 51), kept},
		{"after one that took no such time", begin().acquire("a", 0, 4).release("a", 6, 7).refuse("b", 50, 51), broken},
		{"another beside one that was sent again at once", begin().acquire("a", 0, 5).acquire("b", 6, 7), broken},
	})
	judge(t, history.Rules{Model: history.Exclusive, Crowd: true}, []example{
		{"in a crowd", begin().refuse("b", 8, 9), kept},
	})
	judge(t, history.Rules{Model: history.ReadWrite, Fair: true, Woken: 20}, []example{
		{"beside an intent", begin().acquire("a", 1, 2).release("a", 2, 3).refuse("b", 8, 9), kept},
		{"a reader beside a reader's intent", begin().acquire("a", 1, 2, shared).release("a", 2, 3).refuse("b", 8, 9, shared), broken},
		{"a reader beside a writer's intent", begin().acquire("a", 1, 2).release("a", 2, 3).refuse("b", 8, 9, shared), kept},
		{"a writer beside a reader's intent", begin().acquire("a", 1, 2, shared).release("a", 2, 3).refuse("b", 8, 9), kept},
		{"beside one who did not wait", begin().acquire("a", 1, 2, noWait).release("a", 2, 3).refuse("b", 8, 9), broken},
		{"an upgrade refused alone, beside an intent", begin().acquire("a", 1, 2, shared).call(history.Upgrade, "a", 3, 5, refused), broken},
		{"long after an intent", begin().acquire("a", 1, 2).release("a", 2, 3).refuse("b", 23, 24), broken},
	})
}

func pending(e *history.Event) { e.Outcome = history.Pending }

func TestFences(t *testing.T) {
	t.Parallel()
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"grow", begin().acquire("a", 0, 2, fence(5)).release("a", 3, 4).acquire("b", 8, 9, fence(6)), kept},
		{"stay", begin().acquire("a", 0, 2, fence(5)).release("a", 3, 4).acquire("b", 8, 9, fence(5)), broken},
		{"fall", begin().acquire("a", 0, 2, fence(5)).release("a", 3, 4).acquire("b", 8, 9, fence(4)), broken},
		{"fall where the order is known by the holds alone", begin().acquire("a", 0, 20, fence(5)).release("a", 21, 24).acquire("b", 8, 25, fence(4)).held("b", 26), broken},
		{"fall after an expiry", begin().acquire("a", 0, 2, fence(5)).acquire("b", 110, 112, fence(4)), broken},
		{"are not asked for", begin().acquire("a", 0, 2, fence(5)).release("a", 3, 4).acquire("b", 8, 9), kept},
		{"fall through a loss", begin().acquire("a", 0, 2, fence(5)).lose(5, 6).acquire("b", 8, 9, fence(4)), broken},
		{"a write by the holder", begin().acquire("a", 0, 2, fence(5)).write("a", 5, 5), kept},
		{"a write by the holder is rejected", begin().acquire("a", 0, 2, fence(5)).write("a", 5, 5, refused), broken},
		{"a late write is rejected", begin().acquire("a", 0, 2, fence(5)).acquire("b", 110, 112, fence(6)).write("b", 113, 6).write("a", 115, 5, refused), kept},
		{"a late write comes before the holder's", begin().acquire("a", 0, 2, fence(5)).acquire("b", 110, 112, fence(6)).write("a", 113, 5).write("b", 115, 6), kept},
		{"a late write is accepted", begin().acquire("a", 0, 2, fence(5)).acquire("b", 110, 112, fence(6)).write("b", 113, 6).write("a", 115, 5), broken},
		{"a late write may have been rejected", begin().acquire("a", 0, 2, fence(5)).acquire("b", 110, 112, fence(6)).write("b", 113, 6, unknown).write("a", 115, 5, refused), kept},
	})
}

func TestReentrant(t *testing.T) {
	t.Parallel()
	x, y := owner("x"), owner("y")
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"nested", begin().acquire("a", 0, 2, x).acquire("b", 5, 6, x).release("a", 7, 8, x).held("b", 9, x).release("b", 10, 11, x).acquire("c", 12, 13, y), kept},
		{"another gets in", begin().acquire("a", 0, 2, x).acquire("b", 5, 6, y), broken},
		{"another gets in after one of two releases", begin().acquire("a", 0, 2, x).acquire("b", 5, 6, x).release("a", 7, 8, x).acquire("c", 12, 13, y), broken},
		{"another gets in after the first of two leases", begin().acquire("a", 0, 2, x).acquire("b", 50, 52, x).acquire("c", 120, 122, y), broken},
		{"another gets in after both leases", begin().acquire("a", 0, 2, x).acquire("b", 50, 52, x).acquire("c", 151, 152, y), kept},
		{"a release ends both", begin().acquire("a", 0, 2, x).acquire("b", 5, 6, x).release("a", 7, 8, x).release("b", 10, 11, x, lost), broken},
		{"refused by itself", begin().acquire("a", 0, 2, x).refuse("b", 5, 6, x), broken},
		{"refused by another", begin().acquire("a", 0, 2, x).refuse("b", 5, 6, y), kept},
		{"one token for a tenure", begin().acquire("a", 0, 2, x, fence(5)).acquire("b", 5, 6, x, fence(5)), kept},
		{"a token for a nested hold", begin().acquire("a", 0, 2, x, fence(5)).acquire("b", 5, 6, x, fence(6)), broken},
		{"a tenure that begins to be fenced", begin().acquire("a", 0, 2, x).acquire("b", 5, 6, x, fence(6)), kept},
		{"the next tenure of an owner", begin().acquire("a", 0, 2, x, fence(5)).release("a", 3, 4, x).acquire("b", 5, 6, x, fence(6)), kept},
		{"the token of the last tenure", begin().acquire("a", 0, 2, x, fence(5)).release("a", 3, 4, x).acquire("b", 5, 6, x, fence(5)), broken},
		{"a tenure kept by an acquire without an answer", begin().acquire("a", 0, 2, x, fence(5)).acquire("c", 0, 2, x, unknown).release("a", 3, 4, x).acquire("b", 5, 6, x, fence(5)), kept},
		{"the token of another's tenure", begin().acquire("a", 0, 2, x, fence(5)).release("a", 3, 4, x).acquire("b", 5, 6, y, fence(5)), broken},
	})
}

// A hold requested before a loss, and granted behind it, keeps its tenure.
func TestReentrantLoss(t *testing.T) {
	t.Parallel()
	x, y := owner("x"), owner("y")
	around := func() *script { return begin().acquire("a", 0, 8, x, fence(5)).lose(2, 2) }
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"entered twice", around().acquire("b", 10, 11, x, fence(5)).release("b", 12, 13, x).acquire("b2", 14, 15, x, fence(5)).renew("a", 16, 17, lost), loss},
		{"entered by another", around().acquire("b", 10, 11, x, fence(5)).release("b", 12, 13, x).acquire("c", 14, 15, y, fence(5)), broken},
	})
}

// The leases of many nested holds end in any order. Behind a loss no order is right: the check does
// not try each.
func TestManyOrders(t *testing.T) {
	t.Parallel()
	s := begin()
	for i := range 26 {
		hold := string(rune('a' + i))
		s.acquire(hold, 0, 2, owner("x")).leave(hold, 3)
	}
	s.acquire("y2", 156, 157, owner("y")).lose(160, 161).acquire("z2", 165, 166, owner("z"))
	judge(t, history.Rules{Model: history.Reentrant}, []example{{"nested holds", s, loss}})
}

// A quorum of reentrant locks may be won at other nodes when it is entered again.
func TestReentrantQuorum(t *testing.T) {
	t.Parallel()
	x, y := owner("x"), owner("y")
	outer := func() *script { return begin().acquire("a", 0, 2, x, fence(5)) }
	judge(t, history.Rules{Model: history.Reentrant, Crowd: true}, []example{
		{"a higher token inside", outer().acquire("b", 5, 6, x, fence(7)), kept},
		{"a lower one beside that", outer().acquire("b", 5, 6, x, fence(7)).acquire("c", 8, 9, x, fence(5)), kept},
		{"a lower token inside", outer().acquire("b", 5, 6, x, fence(4)), broken},
		{"the outer one writes behind the inner one", outer().acquire("b", 5, 6, x, fence(7)).write("b", 7, 7).write("a", 8, 5, refused), kept},
		{"the inner one writes", outer().acquire("b", 5, 6, x, fence(7)).write("a", 7, 5).write("b", 8, 7, refused), broken},
		{"the next tenure has the token of an inner one", outer().acquire("b", 5, 6, x, fence(7)).release("b", 7, 8, x).release("a", 9, 10, x).acquire("c", 11, 12, y, fence(7)), broken},
	})
}

func TestReadWrite(t *testing.T) {
	t.Parallel()
	judge(t, history.Rules{Model: history.ReadWrite}, []example{
		{"two read", begin().acquire("a", 0, 2, shared).acquire("b", 5, 6, shared).held("a", 7, shared).held("b", 7, shared), kept},
		{"one reads as another writes", begin().acquire("a", 0, 2).acquire("b", 5, 6, shared), broken},
		{"one writes as another reads", begin().acquire("a", 0, 2, shared).acquire("b", 5, 6), broken},
		{"one of two readers leaves", begin().acquire("a", 0, 2, shared).acquire("b", 5, 6, shared).release("a", 7, 8).acquire("c", 9, 10), broken},
		{"both readers leave", begin().acquire("a", 0, 2, shared).acquire("b", 5, 6, shared).release("a", 7, 8).release("b", 7, 8).acquire("c", 9, 10), kept},
		{"a reader refuses a reader", begin().acquire("a", 0, 2, shared).refuse("b", 5, 6, shared), broken},
		{"a reader refuses a writer", begin().acquire("a", 0, 2, shared).refuse("b", 5, 6), kept},
		{"a reader claims to write", begin().acquire("a", 0, 2, shared).held("a", 5), broken},
		{"a downgrade lets readers in", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5).acquire("b", 6, 7, shared).held("a", 8, shared), kept},
		{"a downgrade lets no writer in", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5).acquire("b", 6, 7), broken},
		{"writes after a downgrade", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5).held("a", 8), broken},
		{"a downgrade without an answer", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5, unknown).acquire("b", 6, 7, shared), kept},
		{"a downgrade without an answer, not done", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5, unknown).refuse("b", 6, 7, shared), kept},
		{"a downgrade that was not done", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5, failed).held("a", 6).refuse("b", 6, 7, shared), kept},
		{"a downgrade that was not done lets readers in", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5, failed).acquire("b", 6, 7, shared), broken},
		{"writes after a downgrade without an answer", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 5, unknown).held("a", 8), broken},
		{"a downgrade during which the lease ends", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 10, 100, lost).acquire("b", 20, 21, shared), kept},
		{"a reader before a downgrade during which the lease ends", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 10, 100, lost).acquire("b", 5, 6, shared), broken},
		{"a downgrade that is lost before the lease ends", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 10, 11, lost).acquire("b", 20, 21, shared), broken},
		{"a reader refused while the lease ends during an upgrade", begin().acquire("a", 0, 2, shared).call(history.Upgrade, "a", 10, 100, lost).refuse("b", 20, 21, shared), kept},
		{"an upgrade", begin().acquire("a", 0, 2, shared).call(history.Upgrade, "a", 3, 5).held("a", 6).refuse("b", 6, 7, shared), kept},
		{"an upgrade beside a reader", begin().acquire("a", 0, 2, shared).acquire("b", 0, 2, shared).call(history.Upgrade, "a", 3, 5), broken},
		{"an upgrade refused beside a reader", begin().acquire("a", 0, 2, shared).acquire("b", 0, 2, shared).call(history.Upgrade, "a", 3, 5, refused), kept},
		{"an upgrade refused alone", begin().acquire("a", 0, 2, shared).call(history.Upgrade, "a", 3, 5, refused), broken},
		{"an upgrade lets a reader in", begin().acquire("a", 0, 2, shared).call(history.Upgrade, "a", 3, 5).acquire("b", 6, 7, shared), broken},
		{"readers share a token", begin().acquire("a", 0, 2, shared, fence(5)).acquire("b", 5, 6, shared, fence(5)), kept},
		{"a reader has an old token", begin().acquire("a", 0, 2, fence(5)).release("a", 3, 4).acquire("b", 5, 6, shared, fence(4)), broken},
		{"a writer has its readers' token", begin().acquire("a", 0, 2, shared, fence(5)).release("a", 3, 4).acquire("b", 5, 6, fence(5)), broken},
		{"an upgrade mints", begin().acquire("a", 0, 2, shared, fence(5)).call(history.Upgrade, "a", 3, 4, fence(6)).write("a", 5, 6), kept},
		{"an upgrade does not mint", begin().acquire("a", 0, 2, shared, fence(5)).call(history.Upgrade, "a", 3, 4, fence(5)), broken},
		{"an upgrade after a downgrade does not mint", begin().acquire("a", 0, 2, fence(5)).call(history.Downgrade, "a", 3, 4, fence(5)).call(history.Upgrade, "a", 5, 6, fence(5)), broken},
		{"an upgrade after a downgrade that never came", begin().acquire("a", 0, 2, fence(5)).call(history.Downgrade, "a", 3, 4, fence(5), unknown).call(history.Upgrade, "a", 5, 6, fence(5)).write("a", 7, 8), kept},
		{"an upgrade to less than there was", begin().acquire("a", 0, 2, fence(5)).call(history.Downgrade, "a", 3, 4, fence(5), unknown).call(history.Upgrade, "a", 5, 6, fence(4)), broken},
	})
}

func TestLosses(t *testing.T) {
	t.Parallel()
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"another gets in through a loss", begin().acquire("a", 0, 2).lose(5, 6).acquire("b", 8, 9), loss},
		{"a holder is told of the loss", begin().acquire("a", 0, 2).lose(5, 6).renew("a", 8, 9, lost), loss},
		{"a loss that harms nobody", begin().acquire("a", 0, 2).lose(5, 6).renew("a", 8, 9), kept},
		{"two get in after a loss", begin().acquire("a", 0, 2).lose(5, 6).acquire("b", 8, 9).acquire("c", 10, 11), broken},
		{"two get in before a loss could be felt", begin().acquire("a", 0, 2).leave("a", 3).acquire("b", 8, 9).leave("b", 10).lose(400, 401), broken},
		{"a write is rejected through a loss", begin().acquire("a", 0, 2, fence(5)).lose(5, 6).acquire("b", 8, 9, fence(6)).write("b", 10, 6).write("a", 12, 5, refused), loss},
		{"a write of the one behind the loss is rejected", begin().acquire("a", 0, 2, fence(5)).lose(5, 6).acquire("b", 8, 9, fence(6)).write("b", 10, 6, refused), broken},
		{"a token falls", begin().acquire("a", 0, 2, fence(5)).lose(5, 6).acquire("b", 8, 9, fence(5)), broken},
		{"two hold before a loss", begin().acquire("a", 0, 2).acquire("b", 8, 9).lose(20, 21), broken},
		{"two held and let go before a loss", begin().acquire("a", 0, 2).acquire("b", 8, 9).release("a", 10, 11).release("b", 10, 11).lose(20, 21), broken},
		{"a release finds nothing before a loss", begin().acquire("a", 0, 2).release("a", 5, 6, lost).lose(20, 21), broken},
		{"a holder is told before a loss", begin().acquire("a", 0, 2).renew("a", 5, 6, lost).lose(20, 21), broken},
		{"held while released before a loss", begin().acquire("a", 0, 2).release("a", 3, 4).held("a", 10).lose(20, 21), broken},
		{"a write of the holder is rejected before a loss", begin().acquire("a", 0, 2, fence(5)).write("a", 3, 6).write("a", 5, 5, refused).lose(20, 21), broken},
		{"another gets in before a loss while a release is under way", begin().acquire("a", 0, 2).release("a", 5, 30).acquire("b", 8, 9).lose(20, 21).renew("b", 40, 41, lost), loss},
		{"asked for before a loss and granted behind it", begin().acquire("a", 0, 2).acquire("b", 10, 30).lose(20, 21), loss},
		{"two in the middle of a loss", begin().acquire("a", 0, 2).lose(5, 30).acquire("b", 8, 9).acquire("c", 10, 11).held("b", 12), loss},
		{"a hold that ended before a loss and comes back", begin().acquire("a", 0, 2).leave("a", 3).lose(110, 111).refuse("b", 300, 301).acquire("c", 302, 303).acquire("d", 304, 305), broken},
		{"a release is lost", begin().acquire("a", 0, 2).release("a", 3, 4).lose(5, 6).refuse("b", 8, 9), loss},
	})
}

// A history too hard to check is not taken for a good one.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := begin()
	for i := range 60 {
		s.acquire(fmt.Sprintf("a%d", i), 0, 1000, shared, fence(int64(1000-i)))
	}
	s.acquire("b", 1001, 1002).acquire("c", 1003, 1004)
	res := history.Check(history.Settle(s.events, 5000), history.Rules{Model: history.Exclusive}, time.Millisecond)
	if res.Verdict != history.Unknown || res.Reason == "" {
		t.Errorf("%s: %s", res.Verdict, res.Reason)
	}
}

// Behind a failover the old master may serve its known owners for a while.
func TestTwoMasters(t *testing.T) {
	t.Parallel()
	x, y := owner("x"), owner("y")
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"the old tenure is entered again", begin().acquire("a", 0, 2, x, fence(5)).lose(3, 30).acquire("b", 8, 9, y, fence(6)).acquire("c", 10, 11, x, fence(5)), loss},
		{"a new tenure has an old token", begin().acquire("a", 0, 2, x, fence(5)).lose(3, 30).acquire("b", 8, 9, y, fence(6)).acquire("c", 10, 11, x, fence(4)), broken},
		{"a tenure that a resent acquire began at the other master is entered", begin().lose(0, 30).acquire("a", 3, 5, x, resent, fence(6)).acquire("b", 8, 9, x, fence(5)), loss},
		{"a token falls behind an acquire that was sent once", begin().lose(0, 30).acquire("a", 3, 5, x, fence(6)).acquire("b", 8, 9, x, fence(5)), broken},
		{"a token falls behind a resent acquire, without a failover", begin().acquire("a", 3, 5, x, resent, fence(6)).acquire("b", 8, 9, x, fence(5)), broken},
		{"a token falls behind a resent acquire of another", begin().lose(0, 30).acquire("a", 3, 5, y, resent, fence(6)).acquire("b", 8, 9, x, fence(5)), broken},
		{"a token falls when all that a resent acquire left has expired", begin().lose(0, 30).acquire("a", 3, 5, x, resent, fence(6)).acquire("b", 300, 301, x, fence(5)), broken},
		{"another's token", begin().acquire("a", 0, 2, x, fence(5)).lose(3, 30).acquire("b", 8, 9, y, fence(5)), broken},
		{"the old tenure is lost and its owner begins another", begin().acquire("a", 0, 2, x, fence(5)).lose(3, 30).acquire("b", 40, 41, x, fence(6)).release("a", 43, 44, lost), loss},
	})
	judge(t, history.Rules{Model: history.ReadWrite}, []example{
		{"a downgrade that a loss overtakes", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 30).acquire("b", 5, 6, shared).lose(20, 21).renew("a", 40, 41, lost), loss},
		{"an upgrade that a loss overtakes", begin().acquire("a", 0, 2, shared).call(history.Upgrade, "a", 3, 30).refuse("b", 5, 6, shared).lose(20, 21).renew("a", 40, 41, lost), loss},
		{"a reader writes beside another before a loss", begin().acquire("a", 0, 2, shared).acquire("b", 0, 2, shared).call(history.Upgrade, "a", 3, 5).lose(20, 21), broken},
		{"a reader's token is behind a writer's that was lost", begin().acquire("a", 0, 2, fence(5)).release("a", 3, 4).lose(20, 21).acquire("b", 30, 31, shared, fence(4)).acquire("c", 32, 33, shared, fence(4)), loss},
		{"a reader has the token of the old master's writer", begin().acquire("a", 0, 2, fence(5)).lose(3, 30).acquire("b", 8, 9, fence(6)).acquire("c", 10, 11, shared, fence(5)), loss},
		{"an upgrade falls behind its own hold's token", begin().acquire("a", 0, 2, fence(6)).call(history.Downgrade, "a", 3, 4).lose(5, 6).call(history.Upgrade, "a", 8, 9, fence(5)), broken},
		{"an upgrade of a writer, behind another master's token", begin().acquire("a", 0, 2, fence(5)).lose(3, 10).acquire("b", 4, 5, fence(6)).call(history.Upgrade, "a", 8, 9, fence(5)), loss},
		{"an upgrade of a reader, behind another master's token", begin().acquire("a", 0, 2, shared, fence(5)).lose(3, 10).acquire("b", 4, 5, fence(7)).call(history.Upgrade, "a", 8, 9, fence(6)), broken},
		{"an upgrade of a writer", begin().acquire("a", 0, 2, fence(6)).lose(5, 6).call(history.Upgrade, "a", 8, 9, fence(6)), kept},
		{"a writer has it", begin().acquire("a", 0, 2, fence(5)).lose(3, 30).acquire("b", 8, 9, fence(6)).acquire("c", 10, 11, fence(5)), broken},
	})
}
