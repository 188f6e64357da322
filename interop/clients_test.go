package interop

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
)

// Over the other clients the keys are the same: one library of each language shows it.
func TestClients(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	for _, c := range clients.WithFork {
		if c.Name == clients.All[0].Name {
			continue // TestPeers has it
		}
		for _, name := range []string{"redislock", "redis-py", "redlock-5", "spring-spin"} {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPair(t, kindNamed(name), c)
				t.Run("excluded", p.testExcluded)
				p.hammer(t)
			})
		}
	}
}

func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}
