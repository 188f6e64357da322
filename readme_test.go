package holdfast_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// block returns the first code block of the README after mark.
func block(t *testing.T, mark string) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), mark+"\n")
	code, _, closed := strings.Cut(strings.TrimPrefix(rest, "```\n"), "```")
	if !ok || !closed {
		t.Fatalf("README.md has no code block after %q", mark)
	}
	return code
}

// Every line of the code in the README stands in an example, which is compiled and run.
func TestReadmeCode(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Error("README.md has no code")
	}
	for _, rest := range blocks {
		code, _, _ := strings.Cut(rest, "```")
		for line := range strings.Lines(code) {
			if !strings.Contains(string(example), strings.TrimSpace(line)) {
				t.Errorf("not in example_test.go: %s", line)
			}
		}
	}
}

// dialers connect as a user to one server.
var dialers = map[string]func(t *testing.T, addr, user, password string) driver.Driver{
	"goredis": func(t *testing.T, addr, user, password string) driver.Driver {
		c := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: password})
		t.Cleanup(func() { _ = c.Close() })
		return locker.Must(goredis.New(c))
	},
	"rueidis": func(t *testing.T, addr, user, password string) driver.Driver {
		c, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{addr}, Username: user, Password: password, DisableCache: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return locker.Must(rueidis.New(c))
	},
	"redigo": func(t *testing.T, addr, user, password string) driver.Driver {
		pool := &redigoclient.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
			return redigoclient.DialContext(ctx, "tcp", addr, redigoclient.DialUsername(user), redigoclient.DialPassword(password))
		}}
		t.Cleanup(func() { _ = pool.Close() })
		return locker.Must(redigo.New(pool))
	},
}

// The ACL rule of the README is enough for everything that the library does, and for no other name.
func TestReadmeACL(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	server := redistest.Start(t, redistest.Options{})
	full := strings.TrimSpace(block(t, "<!-- tested: readme_test.go -->"))
	without := func(user string, dropped ...string) []any {
		rule := full
		for _, d := range dropped {
			if !strings.Contains(rule, " "+d) {
				t.Fatalf("the rule in the README has no %s: %s", d, rule)
			}
			rule = strings.Replace(rule, " "+d, "", 1)
		}
		var args []any
		for word := range strings.FieldsSeq(strings.Replace(rule, "SETUSER locks ", "SETUSER "+user+" ", 1)) {
			args = append(args, word)
		}
		return args
	}
	for _, rule := range [][]any{
		without("locks"), without("deaf", "+publish", "+subscribe", "+unsubscribe", "&{lock:*}:wake"), without("unfenced", "~{lock:*}:fence"),
	} {
		if _, err := server.Command(rule...); err != nil {
			t.Fatalf("%v: %v", rule, err)
		}
	}
	for name, dial := range dialers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for user, fenced := range map[string]bool{"locks": true, "deaf": true, "unfenced": false} {
				drv := dial(t, server.Addr(), user, "secret")
				t.Cleanup(func() { _ = drv.Close() })
				useEverything(t, drv, "lock:"+name+":"+user, fenced)
				if user == "locks" {
					subscribe(t, drv, "{lock:"+name+"}:wake")
				}
				if !fenced {
					refused(t, drv, locker.Request{Name: "lock:" + name, Fenced: true})
				}
				refused(t, drv, locker.Request{Name: "other:" + name})
			}
		})
	}
}

func useEverything(t *testing.T, drv driver.Driver, name string, fenced bool) {
	t.Helper()
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Fenced: fenced, Owner: "me"})
	if err != nil {
		t.Fatalf("%s: acquire: %v", name, err)
	}
	waiting, waited := make(chan struct{}), make(chan error, 1)
	go func() {
		ctx := locker.WithTrace(t.Context(), onWaiting(waiting))
		_, err := locker.Try(ctx, l, locker.Request{Name: name, MaxWait: time.Minute}, func(context.Context, *locker.Lock) error { return nil })
		waited <- err
	}()
	<-waiting
	resumed, err := locker.Resume(t.Context(), l, lock.Handle())
	if err != nil {
		t.Fatalf("%s: resume: %v", name, err)
	}
	if err := errors.Join(resumed.Renew(t.Context(), time.Minute), resumed.Release(t.Context()), <-waited); err != nil {
		t.Errorf("%s: renew, release, wait: %v", name, err)
	}
}

func subscribe(t *testing.T, drv driver.Driver, channel string) {
	t.Helper()
	sub, err := drv.Subscribe(t.Context(), channel)
	if err != nil {
		t.Errorf("subscribe: %v", err)
		return
	}
	_ = sub.Close()
}

func refused(t *testing.T, drv driver.Driver, req locker.Request) {
	t.Helper()
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))
	_, err := l.Acquire(t.Context(), req)
	if driver.CodeOf(err) != "NOPERM" || errors.Is(err, locker.ErrUnknownOutcome) || errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("%q: %v; want NOPERM and nothing else", req.Name, err)
	}
}
