package timers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

// Over each client, every operation with a timer is done. The census comes a second after: timers
// of several seconds are still set then.
func TestNoTimerIsLeft(t *testing.T) {
	effort.NeedFull(t)
	for _, tt := range []struct {
		name string
		use  func(context.Context, *testing.T, clients.Client)
	}{{"servers that answer", useAnswering}, {"servers that do not", useSilent}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()                // it ends after the census: its end would stop remaining timers
			t.Run("all", func(t *testing.T) { // at its end all is closed
				for _, c := range clients.All {
					t.Run(c.Name, func(t *testing.T) {
						t.Parallel()
						tt.use(ctx, t, c)
					})
				}
			})
			<-time.After(time.Second) // middleware/retry keeps subscriptions, with a timer, for so long
			check.EqualSlices(t, "timers left when all is closed", census(t), nil)
		})
	}
}

func useAnswering(ctx context.Context, t *testing.T, c clients.Client) {
	t.Helper()
	s := begin(ctx, t, c)
	s.together((*user).succeeds)
	commands(t, s.drvs[0])
}

func useSilent(ctx context.Context, t *testing.T, c clients.Client) {
	t.Helper()
	s := begin(ctx, t, c)
	heard := locker.Must(s.drvs[0].Subscribe(ctx, "heard to the end"))
	s.together((*user).prepare)
	s.all("freeze", (*redistest.Server).Freeze)
	commandsFail(t, s.drvs[0])
	s.together((*user).fails)
	s.all("thaw", (*redistest.Server).Thaw)
	s.all("stop", (*redistest.Server).Stop)
	commandsFail(t, s.drvs[0])
	s.together((*user).fails)
	check.OK(t, heard.Close())
}

// scene is one client, with servers and users of its own.
type scene struct {
	*testing.T
	servers []*redistest.Server
	drvs    []driver.Driver
	users   []*user
}

func begin(ctx context.Context, t *testing.T, c clients.Client) *scene {
	t.Helper()
	s := &scene{T: t, servers: redistest.StartN(t, nodes, redistest.Options{})}
	for _, server := range s.servers {
		s.drvs = append(s.drvs, c.Open(t, server.Addr()))
	}
	for _, st := range strategies {
		calm, hasty := chain(st.open(s.drvs, 0)), chain(st.open(s.drvs, 300*time.Millisecond))
		s.users = append(s.users, &user{T: t, strategy: st, ctx: ctx, servers: s.servers, calm: calm, hasty: hasty})
	}
	return s
}

func (s *scene) all(what string, f func(*redistest.Server) error) {
	s.Helper()
	for _, server := range s.servers {
		if err := f(server); err != nil {
			s.Fatalf("%s: %v", what, err)
		}
	}
}

// together has all users do f at once.
func (s *scene) together(f func(*user)) {
	var wg sync.WaitGroup
	for _, u := range s.users {
		wg.Go(func() { f(u) })
	}
	wg.Wait()
}
