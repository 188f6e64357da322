package history_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// resume takes the hold over, and calls it hold from then on.
func (s *script) resume(hold, over string, from, to int64, edits ...edit) *script {
	promise := func(e *history.Event) {
		if e.TTL, e.Over = ttl, over; e.Outcome == history.OK {
			e.Deadline = from + ttl
		}
	}
	return s.call(history.Resume, hold, from, to, append(append([]edit{owner(over)}, edits...), promise)...)
}

func TestResume(t *testing.T) {
	t.Parallel()
	taken := func() *script { return begin().acquire("a", 0, 2).resume("b", "a", 10, 12) }
	doubted := func() *script { return begin().acquire("a", 0, 2).resume("b", "a", 10, 12, unknown) }
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"the new one uses and releases it", taken().held("b", 20).renew("b", 30, 31).release("b", 40, 41).acquire("c", 50, 51), kept},
		{"the lease is the new one's", taken().held("b", 105).acquire("c", 111, 112), kept},
		{"another gets in before the new deadline", taken().acquire("c", 105, 106), broken},
		{"another is refused meanwhile", taken().refuse("c", 105, 106), kept},
		{"a key that stays", taken().leave("b", 110).refuse("c", 265, 266), broken},
		{"a lease that was longer", begin().acquire("a", 0, 2).held("a", 50, deadline(400)).resume("b", "a", 55, 56).leave("b", 60).refuse("c", 500, 501), kept},
		{"of what nobody acquired", begin().resume("b", "a", 10, 12), broken},
		{"of what was released", begin().acquire("a", 0, 2).release("a", 3, 4).resume("b", "a", 10, 12), broken},
		{"of what another holds", begin().acquire("a", 0, 2).leave("a", 3).acquire("c", 110, 111).resume("b", "a", 120, 121), broken},
		{"of what its holder left, behind its deadline", begin().acquire("a", 0, 2).leave("a", 3).resume("b", "a", 105, 106), kept},
		{"of what is long gone", begin().acquire("a", 0, 2).leave("a", 3).resume("b", "a", 400, 401), broken},
		{"while it is released", begin().acquire("a", 0, 2).release("a", 3, 20, unknown).resume("b", "a", 10, 12), kept},
		{"of a resumed one", taken().resume("c", "b", 20, 22).renew("b", 30, 31, lost).held("c", 40), kept},
		{"of a resumed one that was released", taken().release("b", 13, 14).resume("c", "b", 20, 22), broken},

		{"the old one believes in its deadline", taken().held("a", 90), kept},
		{"the old one believes, though another holds by now", taken().release("b", 20, 21).acquire("c", 30, 31).held("a", 90), kept},
		{"the old one is told", taken().renew("a", 20, 21, lost), kept},
		{"the old one renews", taken().renew("a", 20, 21), broken},
		{"the old one renews after the new one released", taken().release("b", 14, 15).renew("a", 20, 21), broken},
		{"the old one renews meanwhile", begin().acquire("a", 0, 2).resume("b", "a", 10, 20).renew("a", 9, 21), kept},
		{"the old one believes after it was told", taken().renew("a", 20, 21, lost).held("a", 30), broken},
		{"the old one releases and is told", taken().release("a", 20, 21, lost).held("b", 30), kept},
		{"the old one's release is sent again", taken().release("a", 20, 21).held("b", 30), kept},
		{"the old one's release ends the new one", taken().release("a", 20, 21).acquire("c", 30, 31), broken},
		{"the old one's release frees the new one's renewal", taken().release("a", 20, 21).renew("b", 30, 31, lost), broken},
		{"released during a resume that is undone", begin().acquire("a", 0, 2).release("a", 5, 20).resume("b", "a", 6, 7, unknown).resume("c", "a", 30, 31).release("c", 40, 41).acquire("d", 50, 51), kept},
		{"released before a resume that is undone", begin().acquire("a", 0, 2).release("a", 3, 4).resume("b", "a", 6, 7, unknown).resume("c", "a", 30, 31), broken},
		{"the old one is told before the resume", begin().acquire("a", 0, 2).renew("a", 5, 6, lost).resume("b", "a", 10, 12), broken},

		{"the old one renews, whose resume took long", begin().acquire("a", 0, 2).resume("b", "a", 10, 60).resume("c", "b", 70, 71).renew("b", 80, 81), broken},

		{"of what a late acquire brought back", begin().acquire("a", 0, 60).release("a", 65, 66).resume("b", "a", 70, 71).held("b", 80), kept},
		{"of what a resent acquire brought back", begin().acquire("a", 0, 5, resent).resume("c", "a", 10, 11).release("c", 12, 13).resume("b", "a", 20, 21), kept},
		{"of what was released, after an acquire that was sent once", begin().acquire("a", 0, 5).resume("c", "a", 10, 11).release("c", 12, 13).resume("b", "a", 20, 21), broken},
		{"of what a late acquire brought back beside another", begin().acquire("a", 0, 60).release("a", 65, 66).acquire("c", 67, 68).resume("b", "a", 70, 71).held("c", 80), broken},
		{"two resumes win, one of what a late acquire brought back", begin().acquire("a", 0, 60).resume("c", "a", 65, 66).release("c", 67, 68).resume("b", "a", 70, 71), kept},
		{"two resumes win", taken().resume("c", "a", 10, 12), broken},
		{"one of two resumes wins", taken().resume("c", "a", 10, 12, lost), kept},
		{"none of two resumes wins", begin().acquire("a", 0, 2).resume("b", "a", 10, 12, lost).resume("c", "a", 10, 12, lost), broken},
		{"lost while it is held", begin().acquire("a", 0, 2).resume("b", "a", 10, 12, lost), broken},
		{"lost before another takes it over", begin().acquire("a", 0, 2).resume("b", "a", 10, 12, lost).resume("c", "a", 20, 22), broken},
		{"lost after the release", begin().acquire("a", 0, 2).release("a", 3, 4).resume("b", "a", 10, 12, lost), kept},
		{"lost after the deadline", begin().acquire("a", 0, 2).leave("a", 3).resume("b", "a", 105, 106, lost), kept},
		{"lost to an acquire that was answered late", begin().acquire("a", 0, 40).resume("b", "a", 50, 52, lost), broken},
		{"refused", taken().resume("c", "a", 20, 22, refused), broken},

		{"without an answer, the old one goes on", doubted().renew("a", 20, 21).held("a", 30).resume("c", "a", 40, 41), kept},
		{"without an answer, the old one is told", doubted().renew("a", 20, 21, lost), kept},
		{"without an answer, the old one was told before", begin().acquire("a", 0, 2).renew("a", 5, 6, lost).resume("b", "a", 10, 12, unknown), broken},
		{"without an answer, the old one's release finds nothing", doubted().release("a", 20, 21, lost).refuse("c", 90, 91).acquire("c", 101, 102), kept},
		{"without an answer, the old one's release finds nothing, another takes it over", doubted().release("a", 20, 21, lost).refuse("d", 25, 26).resume("c", "a", 30, 31).held("c", 40), kept},
		{"without an answer, another gets in before it is taken over", doubted().release("a", 20, 21, lost).acquire("d", 25, 26).resume("c", "a", 30, 31), broken},
		{"without an answer, another resume finds nothing", doubted().resume("c", "a", 20, 21, lost), kept},
		{"without an answer, the old one is told long after", doubted().renew("a", 80, 81).renew("a", 160, 161).renew("a", 240, 241).renew("a", 280, 281, lost), broken},
		{"without an answer, another resume finds nothing long after", doubted().renew("a", 80, 81).renew("a", 160, 161).renew("a", 240, 241).resume("c", "a", 280, 281, lost), broken},
		{"without an answer, another gets in", doubted().acquire("c", 50, 51), broken},
		{"without an answer, another gets in though the old one was told", doubted().renew("a", 20, 21, lost).acquire("c", 50, 51), broken},
		{"without an answer, the old one believes after it was told", doubted().renew("a", 20, 21, lost).held("a", 30), broken},
		{"without an answer, a key that stays a while", doubted().leave("a", 20).refuse("c", 240, 241), kept},
		{"without an answer, the old one's release is done late", doubted().release("a", 20, 21, lost).refuse("d", 40, 41).acquire("c", 50, 51), kept},
		{"without an answer, something is left behind the release", doubted().release("a", 20, 21).refuse("c", 50, 51), kept},
		{"without an answer, late, a key that stays a while", begin().acquire("a", 0, 2).leave("a", 3).resume("b", "a", 98, 110, unknown).refuse("c", 255, 256), kept},
		{"without an answer, a key that stays", doubted().leave("a", 20).refuse("c", 255, 256), broken},
		{"answered too late", begin().acquire("a", 0, 2).resume("b", "a", 10, 60, lost).renew("a", 70, 71, lost), kept},
	})
	judge(t, history.Rules{Model: history.Exclusive, Crowd: true}, []example{
		{"another gets in during a resume without an answer, whose old one a watchdog tells", doubted().acquire("c", 20, 21).release("a", 50, 51, lost), kept},
		{"another gets in before a resume without an answer", begin().acquire("a", 0, 2).acquire("c", 5, 6).resume("b", "a", 10, 12, unknown).release("a", 50, 51, lost), broken},
		{"another gets in though the old one believes", doubted().acquire("c", 20, 21).held("a", 30), broken},
		{"missed by a quorum", begin().acquire("a", 0, 2).resume("b", "a", 10, 12, lost).renew("a", 20, 21), kept},
		{"taken over by a quorum", taken().renew("a", 20, 21), broken},
	})
}

func TestResumeFences(t *testing.T) {
	t.Parallel()
	fenced := func() *script { return begin().acquire("a", 0, 2, fence(5)) }
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"a fresh token", fenced().resume("b", "a", 10, 12, fence(6)).write("b", 20, 6).write("a", 21, 5, refused), kept},
		{"the old token", fenced().resume("b", "a", 10, 12, fence(5)), broken},
		{"a lower token", fenced().resume("b", "a", 10, 12, fence(4)), broken},
		{"a lower token through a loss", fenced().lose(5, 6).resume("b", "a", 10, 12, fence(4)), broken},
		{"the new one's write is rejected", fenced().resume("b", "a", 10, 12, fence(6)).write("a", 19, 5).write("b", 20, 6, refused), broken},
		{"the old one writes behind the new one", fenced().resume("b", "a", 10, 12, fence(6)).write("b", 19, 6).write("a", 20, 5), broken},
		{"the next holder has the resumed one's", fenced().resume("b", "a", 10, 12, fence(6)).release("b", 13, 14).acquire("c", 20, 21, fence(6)), broken},
	})
	x, y := owner("x"), owner("y")
	outer := func() *script { return begin().acquire("a", 0, 2, x, fence(5)) }
	both := func() *script { return outer().acquire("c", 3, 4, x, fence(5)) }
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"one for the tenure", outer().resume("b", "a", 10, 12, x, fence(6)).acquire("c", 20, 21, x, fence(6)), kept},
		{"the tenure keeps the old one", outer().resume("b", "a", 10, 12, x, fence(6)).acquire("c", 20, 21, x, fence(5)), broken},
		{"the other hold writes with the old one", both().resume("b", "a", 10, 12, x, fence(6)).write("b", 20, 6).write("c", 21, 5, refused), kept},
		{"the other hold is rejected before", both().resume("b", "a", 10, 12, x, fence(6)).write("c", 21, 5, refused), broken},
		{"two at once have one, as one was sent again", both().resume("b", "a", 10, 30, x, fence(6)).resume("d", "c", 20, 21, x, fence(6)), kept},
		{"two have one", both().resume("b", "a", 10, 12, x, fence(6)).resume("d", "c", 20, 21, x, fence(6)), broken},
		{"without an answer, it may be raised", outer().resume("b", "a", 10, 12, x, fence(0), unknown).acquire("c", 20, 21, x, fence(6)).acquire("d", 30, 31, x, fence(6)), kept},
		{"without an answer, it does not fall again", outer().resume("b", "a", 10, 12, x, unknown).acquire("c", 20, 21, x, fence(6)).acquire("d", 30, 31, x, fence(5)), broken},
		{"the tenure's, though the resumed hold has none", outer().acquire("c", 3, 4, x).release("a", 5, 6, x).resume("b", "c", 10, 12, x).acquire("d", 20, 21, x, fence(5)), kept},
		{"another, though the resumed hold has none", outer().acquire("c", 3, 4, x).release("a", 5, 6, x).resume("b", "c", 10, 12, x).acquire("d", 20, 21, x, fence(6)), broken},
		{"another owner's is above", outer().resume("b", "a", 10, 12, x, fence(6)).release("b", 13, 14, x).acquire("c", 20, 21, y, fence(6)), broken},
	})
}

func TestResumeModes(t *testing.T) {
	t.Parallel()
	x, y := owner("x"), owner("y")
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"one of two holds", begin().acquire("a", 0, 2, x).acquire("c", 3, 4, x).resume("b", "a", 10, 12, x).release("c", 13, 14, x).held("b", 20, x).release("b", 21, 22, x).acquire("d", 30, 31, y), kept},
		{"another owner gets in beside it", begin().acquire("a", 0, 2, x).resume("b", "a", 10, 12, x).acquire("d", 30, 31, y), broken},
		{"the old one is there again", begin().acquire("a", 0, 2, x).resume("b", "a", 10, 12, x).renew("a", 20, 21, x), broken},
		{"the old one is there again by an acquire that was sent twice", begin().acquire("a", 0, 40, x).resume("b", "a", 50, 52, x).renew("a", 60, 61, x), kept},
		{"and keeps others out", begin().acquire("a", 0, 40, x).resume("b", "a", 50, 52, x).renew("a", 60, 61, x).release("b", 62, 63, x).renew("a", 150, 151, x).refuse("d", 240, 241, y), kept},
	})
	judge(t, history.Rules{Model: history.ReadWrite}, []example{
		{"a reader beside readers", begin().acquire("a", 0, 2, shared).acquire("c", 3, 4, shared).resume("b", "a", 10, 12, shared).held("b", 20, shared), kept},
		{"a writer gets in beside it", begin().acquire("a", 0, 2, shared).resume("b", "a", 10, 12, shared).acquire("d", 30, 31), broken},
		{"a reader gets in beside a writer", begin().acquire("a", 0, 2).resume("b", "a", 10, 12).acquire("d", 30, 31, shared), broken},
		{"a writer becomes a reader", begin().acquire("a", 0, 2).resume("b", "a", 10, 12, shared), broken},
		{"a reader becomes a writer", begin().acquire("a", 0, 2, shared).resume("b", "a", 10, 12), broken},
		{"by a handle from before a downgrade", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 4).resume("b", "a", 10, 12, lost), kept},
		{"by one from before a downgrade, and won", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 4).resume("b", "a", 10, 12), broken},
		{"a downgrade that is told of a loss lets a reader in", begin().acquire("a", 0, 2).resume("b", "a", 5, 6, unknown).call(history.Downgrade, "a", 7, 130, lost).acquire("c", 50, 51, shared), kept},
		{"a reader before a downgrade that is told of a loss", begin().acquire("a", 0, 2).resume("b", "a", 3, 4, unknown).acquire("c", 50, 51, shared).call(history.Downgrade, "a", 55, 130, lost), broken},
		{"after a downgrade without an answer", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 4, unknown).resume("b", "a", 10, 12).resume("c", "b", 20, 21), kept},
		{"lost after a downgrade without an answer", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 4, unknown).resume("b", "a", 10, 12, shared, lost), kept},
		{"a writer after such a downgrade, beside a reader", begin().acquire("a", 0, 2).call(history.Downgrade, "a", 3, 4, unknown).acquire("c", 5, 6, shared).resume("b", "a", 10, 12), broken},
		{"it is converted", begin().acquire("a", 0, 2, shared).resume("b", "a", 10, 12, shared).call(history.Upgrade, "b", 13, 14).held("b", 20), kept},
		{"it was made exclusive meanwhile, whose acquire took long", begin().acquire("a", 0, 40).call(history.Downgrade, "a", 41, 42).call(history.Upgrade, "a", 43, 46).resume("b", "a", 44, 50).renew("b", 60, 61), kept},
		{"of another mode than it is of", begin().acquire("a", 0, 40).call(history.Downgrade, "a", 41, 42).resume("b", "a", 44, 50), broken},
		{"the old one is converted", begin().acquire("a", 0, 2, shared).resume("b", "a", 10, 12, shared).call(history.Upgrade, "a", 13, 14), broken},
		{"the old one is not converted any more", begin().acquire("a", 0, 2, shared).resume("b", "a", 10, 12, shared).call(history.Upgrade, "a", 13, 14, lost), kept},
		{"a reader keeps its token", begin().acquire("a", 0, 2, shared, fence(5)).resume("b", "a", 10, 12, shared, fence(5)), kept},
		{"a reader has an old token", begin().acquire("w", 0, 1, fence(6)).release("w", 1, 2).acquire("a", 3, 4, shared, fence(6)).resume("b", "a", 10, 12, shared, fence(5)), broken},
		{"a writer keeps its token", begin().acquire("a", 0, 2, fence(5)).resume("b", "a", 10, 12, fence(5)), broken},
	})
}

func TestResumeLosses(t *testing.T) {
	t.Parallel()
	judge(t, history.Rules{Model: history.Exclusive}, []example{
		{"another gets in through a loss", begin().acquire("a", 0, 2).resume("b", "a", 10, 12).lose(20, 21).acquire("c", 30, 31), loss},
		{"a resume is undone by a loss", begin().acquire("a", 0, 2).resume("b", "a", 10, 12).lose(20, 21).renew("a", 30, 31), loss},
		{"another gets in when the old one's lease is long over", begin().acquire("a", 0, 2).leave("a", 91).resume("b", "a", 90, 91).renew("b", 180, 181).renew("b", 260, 261).lose(300, 301).acquire("c", 310, 311), loss},
		{"lost by a loss", begin().acquire("a", 0, 2).lose(5, 6).resume("b", "a", 10, 12, lost), loss},
		{"two get in after a loss", begin().acquire("a", 0, 2).lose(5, 6).resume("b", "a", 10, 12, lost).acquire("c", 20, 21).acquire("d", 30, 31), broken},
	})
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"a token of others raised by a hold in doubt", begin().acquire("z", 0, 1, owner("x")).lose(2, 4).acquire("a", 3, 5, fence(5), owner("o")).acquire("b", 6, 7, fence(5), owner("o")).
			resume("c", "a", 10, 11, fence(6), owner("o")).write("c", 12, 6).write("b", 14, 5, refused).acquire("d", 20, 21, fence(6), owner("o")), loss},
		{"a token raised by a hold in doubt", begin().acquire("a", 0, 9, fence(5), owner("o")).lose(3, 4).acquire("b", 5, 6, fence(5), owner("o")).resume("c", "a", 10, 11, fence(6), owner("o")).
			acquire("d", 20, 21, fence(6), owner("o")).lose(30, 31).acquire("e", 40, 41, fence(7), owner("other")), loss},
	})
}

// The old hold was not lost by a server.
func TestResumeIsNoLoss(t *testing.T) {
	t.Parallel()
	s := begin().acquire("a", 0, 2).resume("b", "a", 10, 12).renew("a", 14, 15, lost).lose(20, 21).acquire("c", 30, 31)
	res := history.Check(history.Settle(s.events, 1000), history.Rules{Model: history.Exclusive, Linger: linger}, time.Minute)
	if res.Verdict != history.Loss || res.Losses != 1 {
		t.Errorf("%s of %d", res.Verdict, res.Losses)
	}
}

// A resume is recorded with its request and its answer.
func TestResumeRecorder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		rec := history.NewRecorder(time.Now(), nil)
		a, b := rec.Client(1), rec.Client(2)
		old := locker.Must(a.Acquire(t.Context(), l, locker.Request{Name: "n", TTL: time.Second, Fenced: true, Owner: "o"}))
		h := locker.Must(b.Resume(t.Context(), l, old.Pass()))
		got := rec.Events()
		e := got[len(got)-1]
		if e.Kind != history.Resume || e.Client != 2 || e.Outcome != history.OK || e.Over != got[0].Hold || e.Hold != e.ID || e.Name != "n" || e.Owner != "o" ||
			e.TTL != time.Second || e.Fence != h.Fence() || e.Fence <= old.Fence() || e.Deadline != rec.At(h.Deadline()) {
			t.Errorf("resume: %+v", e)
		}
		check.Is(t, check.ErrOf(b.Resume(t.Context(), l, old.Pass())), locker.ErrNotHeld)
		check.Is(t, old.Renew(t.Context(), time.Second), locker.ErrLost)
		if !h.Held() || h.Release(t.Context()) != nil {
			t.Error("not held")
		}
		check.Is(t, check.ErrOf(b.Resume(t.Context(), l, history.Passed{Hold: "x", Handle: "none"})), locker.ErrInvalid)
		if res := history.Check(history.Settle(rec.Events(), rec.Now()), history.Rules{Model: history.Exclusive}, 0); res.Verdict != history.Kept || res.Operations != 6 {
			t.Errorf("%+v", res)
		}
	})
}
