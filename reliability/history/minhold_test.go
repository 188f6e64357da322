package history_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/reliability/history"
)

// minHold asks for a MinHold of so many ms, and a lease of 1 s. The Deadline is at 1 s: only
// acquires at 0 have it.
func minHold(n int) edit {
	return func(e *history.Event) {
		e.MinHold, e.TTL, e.Deadline = time.Duration(n)*time.Millisecond, time.Second, int64(time.Second)
	}
}

// asked sets the request of a refused acquire.
func asked(e *history.Event) { e.TTL, e.Deadline = time.Second, 0 }

// The times are ms here, and by a drifting clock a MinHold of 300 ms may be 12 ms shorter.
func TestMinHold(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	long := func(e *history.Event) { e.TTL, e.Deadline = time.Second, e.Call+int64(time.Second) }
	keeps := func() *script { return begin().acquire("a", 0, 2*ms, minHold(300)) }
	released := func() *script { return keeps().release("a", 5*ms, 7*ms, deadline(1000*ms)) }
	for _, r := range []history.Rules{{Model: history.Exclusive}, {Model: history.Reentrant}, {Model: history.ReadWrite}, {Model: history.Semaphore, Permits: 1}} {
		judge(t, r, []example{
			{"acquired after MinHold", released().acquire("b", 310*ms, 312*ms, long), kept},
			{"acquired before MinHold", released().acquire("b", 200*ms, 202*ms, long), broken},
			{"refused before MinHold", released().refuse("b", 200*ms, 202*ms, asked), kept},
			{"refused after MinHold", released().refuse("b", 320*ms, 322*ms, asked), broken},
			{"waited for MinHold", released().acquire("b", 8*ms, 301*ms, long), kept},
			{"a release after MinHold frees", keeps().release("a", 400*ms, 402*ms).acquire("b", 403*ms, 404*ms, long), kept},
			{"a release after MinHold keeps", keeps().release("a", 400*ms, 402*ms).refuse("b", 420*ms, 422*ms, asked), broken},
			{"acquired before MinHold after a release without an answer", keeps().release("a", 5*ms, 7*ms, unknown).acquire("b", 200*ms, 202*ms, long), broken},
			{"acquired after MinHold after a release without an answer", keeps().release("a", 5*ms, 7*ms, unknown).acquire("b", 310*ms, 312*ms, long), kept},
			{"acquired before MinHold of a dead holder", keeps().leave("a", 3*ms).acquire("b", 310*ms, 312*ms, long), broken},
			{"kept until a server lost it", released().lose(100*ms, 101*ms).acquire("b", 200*ms, 202*ms, long), loss},
			{"a renewal after the release", released().renew("a", 10*ms, 11*ms, asked), broken},
			{"resumed after the release", released().resume("b", "a", 10*ms, 11*ms, long), broken},
			{"not resumed after the release", released().resume("b", "a", 10*ms, 11*ms, lost, asked), kept},
			{"the resumed hold keeps MinHold", keeps().resume("b", "a", 10*ms, 11*ms, long).release("b", 20*ms, 21*ms).acquire("c", 200*ms, 202*ms, long), broken},
		})
	}
	reader := func(e *history.Event) { e.Shared = true }
	judge(t, history.Rules{Model: history.ReadWrite}, []example{
		{
			"a reader beside that of a reader",
			begin().acquire("a", 0, 2*ms, minHold(300), reader).release("a", 5*ms, 7*ms, reader).acquire("b", 10*ms, 12*ms, long, reader), kept,
		},
		{
			"a writer beside that of a reader",
			begin().acquire("a", 0, 2*ms, minHold(300), reader).release("a", 5*ms, 7*ms, reader).acquire("b", 10*ms, 12*ms, long), broken,
		},
		{"a reader beside that of a writer", released().acquire("b", 10*ms, 12*ms, long, reader), broken},
	})
	judge(t, history.Rules{Model: history.Reentrant}, []example{
		{"its own owner", released().acquire("b", 10*ms, 12*ms, long, owner("a")), broken},
		{
			"its own owner, which may hold by an acquire without an answer",
			begin().acquire("c", 0, 1*ms, asked, owner("a"), unknown).acquire("a", 2*ms, 3*ms, minHold(300)).release("a", 5*ms, 7*ms).acquire("b", 10*ms, 12*ms, long, owner("a")), kept,
		},
		{
			"its own owner, which holds",
			begin().acquire("c", 0, 1*ms, long, owner("a")).acquire("a", 2*ms, 3*ms, minHold(300)).release("a", 5*ms, 7*ms).acquire("b", 10*ms, 12*ms, long, owner("a")), kept,
		},
	})
	judge(t, history.Rules{Model: history.Semaphore, Permits: 3}, []example{
		{"the other permits", released().acquire("b", 10*ms, 12*ms, long, permits(2)), kept},
		{"its permit", released().acquire("b", 10*ms, 12*ms, long, permits(3)), broken},
	})
	judge(t, history.Rules{Model: history.Exclusive, HandOver: true}, []example{
		{"handed over", keeps().acquire("b", 3*ms, 6*ms, minHold(0), func(e *history.Event) { e.From = "a" }).release("a", 5*ms, 7*ms), broken},
	})
}
