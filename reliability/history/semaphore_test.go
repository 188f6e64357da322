package history_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/reliability/history"
)

func permits(n int) edit { return func(e *history.Event) { e.Permits = n } }

func TestSemaphore(t *testing.T) {
	t.Parallel()
	two := permits(2)
	all := func() *script { return begin().acquire("a", 0, 2).acquire("b", 0, 2, two) }
	r := history.Rules{Model: history.Semaphore, Permits: 3}
	judge(t, r, []example{
		{"all permits", all().release("a", 5, 6).release("b", 5, 7), kept},
		{"one more than there are", all().acquire("c", 8, 9), broken},
		{"refused beside all", all().refuse("c", 8, 9), kept},
		{"refused though there are enough", begin().acquire("a", 0, 2, two).refuse("c", 8, 9), broken},
		{"refused for want of enough", begin().acquire("a", 0, 2, two).refuse("c", 8, 9, two), kept},
		{"more than are left", begin().acquire("a", 0, 2, two).acquire("c", 8, 9, two), broken},
		{"after a release of one", all().release("a", 5, 7).acquire("c", 8, 9), kept},
		{"two after a release of one", all().release("a", 5, 7).acquire("c", 8, 9, two), broken},
		{"after a lease", all().renew("b", 50, 52).acquire("c", 99, 101), kept},
		{"two after a lease of one", all().renew("b", 50, 52).acquire("c", 99, 101, two), broken},
		{"lost before the deadline", all().renew("a", 50, 52, lost), broken},
		{"a release without an answer", all().release("a", 5, 7, unknown).acquire("c", 8, 9), kept},
		{"a lost hold of two", all().lose(5, 6).acquire("c", 8, 9, two), loss},
	})
	judge(t, r, []example{
		{"tokens increase", begin().acquire("a", 0, 2, fence(5)).acquire("b", 3, 4, fence(6)), kept},
		{"a token twice", begin().acquire("a", 0, 2, fence(5)).acquire("b", 3, 4, fence(5)), broken},
		{"a token below that of one that was answered before", begin().acquire("a", 0, 40, fence(7)).acquire("b", 41, 42, fence(6)), broken},
		{"a token below that of one that was sent again", begin().acquire("a", 0, 40, fence(7)).acquire("b", 20, 21, fence(6)), kept},
		{
			"a token below that of a resume that was sent again",
			begin().acquire("a", 0, 2, fence(5)).resume("c", "a", 10, 60, fence(7)).renew("a", 12, 13, lost).acquire("b", 20, 21, fence(6)), kept,
		},
		{"a token below that of a resume", begin().acquire("a", 0, 2, fence(5)).resume("c", "a", 10, 12, fence(7)).acquire("b", 20, 21, fence(6)), broken},
		{"a write behind that of one beside", begin().acquire("a", 0, 2, fence(5)).acquire("b", 3, 4, fence(6)).write("b", 5, 6).write("a", 7, 5, refused), kept},
		{"a write refused for nothing", begin().acquire("a", 0, 2, fence(5)).acquire("b", 3, 4, fence(6)).write("a", 7, 5, refused), broken},
	})
	judge(t, r, []example{
		{"a resumed hold keeps its permits", begin().acquire("a", 0, 2, two).resume("b", "a", 5, 7).acquire("c", 8, 9, two), broken},
		{"a resumed hold has no more permits", begin().acquire("a", 0, 2, two).resume("b", "a", 5, 7).acquire("c", 8, 9), kept},
	})
}
