package security_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const document = "../../SECURITY.md"

// patience is longer than any wake-up takes; hurry is long enough for one that arrives.
const (
	patience = 2 * time.Minute
	hurry    = 300 * time.Millisecond
)

// rule is the text after "ACL SETUSER user" in SECURITY.md.
func rule(t *testing.T, user string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	check.Must(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "ACL SETUSER "+user+" "); ok {
			return strings.Fields(rest)
		}
	}
	t.Fatalf("%s has no rule for %s", document, user)
	return nil
}

// alsoNeeded is a client's further needs beyond the rules, by SECURITY.md's table, always and with
// such servers.
func alsoNeeded(t *testing.T, client string, kind drivertest.Kind) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	check.Must(t, err)
	_, row, found := strings.Cut(string(text), "\n| `providers/"+client+"` |")
	row, _, _ = strings.Cut(row, "\n")
	cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), "|")
	if !found || len(cells) != 4 {
		t.Fatalf("%s has no row for %s with three cells behind: %q", document, client, cells)
	}
	text = []byte(cells[0])
	switch kind {
	case drivertest.Cluster:
		text = append(text, cells[1]...)
	case drivertest.Sentinel:
		text = append(text, cells[2]...)
	}
	var words []string
	for _, word := range regexp.MustCompile("`([+][^`]*)`").FindAllSubmatch(text, -1) {
		words = append(words, strings.ReplaceAll(string(word[1]), "\x00", "|"))
	}
	return words
}

// setUser replaces the user by one with the rule.
func setUser(t *testing.T, server *redistest.Server, user string, rule []string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", user, "reset"}
	for _, word := range rule {
		args = append(args, word)
	}
	server.MustCommand(t, args...)
}

// dial connects as a user with the password of the rules.
func dial(t *testing.T, client clients.Client, user string, target drivertest.Target) (driver.Driver, error) {
	t.Helper()
	target.Username, target.Password = user, "secret"
	drv, err := client.Dial(t, target)
	if err == nil {
		t.Cleanup(func() { _ = drv.Close() })
	}
	return drv, err
}

func alone(server *redistest.Server) drivertest.Target {
	return drivertest.Target{Kind: drivertest.Single, Addrs: []string{server.Addr()}}
}

// denied returns the entries of the server's ACL log, as in "command get" or "channel
// {lock:a}:wake".
func denied(t *testing.T, server *redistest.Server) []string {
	t.Helper()
	var all []string
	entries, _ := server.MustCommand(t, "ACL", "LOG").([]any)
	for _, entry := range entries {
		fields, _ := entry.([]any)
		named := map[string]any{}
		for i := 0; i+1 < len(fields); i += 2 {
			named[fmt.Sprint(fields[i])] = fields[i+1]
		}
		all = append(all, fmt.Sprint(named["reason"], " ", named["object"]))
	}
	return all
}

// grants returns the permissions in a rule. Each could be left out.
func grants(rule []string) []string {
	var all []string
	for _, word := range rule {
		if strings.ContainsAny(word[:1], "+~&%") {
			all = append(all, word)
		}
	}
	return all
}

// noise are commands of the clients' own. They may be refused.
var noise = []string{"command ping", "command cluster|slots", "command cluster|shards", "command client|setinfo"}

func isNoise(entry string) bool {
	return slices.ContainsFunc(noise, func(what string) bool { return begins(entry, what) })
}

// begins reports whether an entry of the ACL log begins as wanted. Redis 6.2 names no subcommand:
// it logs "command client" for "command client|setinfo".
func begins(entry, want string) bool {
	command, _, _ := strings.Cut(want, "|")
	return strings.HasPrefix(entry, want) || entry == command
}

// A case is a rule of SECURITY.md and how to use it.
type ruleCase struct {
	user, strategy, prefix string
}

var ruleCases = []ruleCase{
	{"single", "single", "lock:"},
	{"reentrant", "reentrant", "lock:"},
	{"rwhash", "rwhash", "lock:"},
	{"semaphore", "semaphore", "lock:"},
	{"redisson", "redisson", "lock:"},
	{"tagged", "single", "lock:{tag}:"},
}

// Each rule is enough for its whole strategy, and needs each of its words: without it something
// fails with NOPERM. By default each rule is tried over one client, with all its words.
func TestACL(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	for i, c := range ruleCases {
		for j, client := range clients.WithFork {
			if !effort.Full() && i%len(clients.WithFork) != j {
				continue
			}
			t.Run(c.user+"/"+client.Name, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, redistest.Options{})
				full := append(rule(t, c.user), alsoNeeded(t, client.Name, drivertest.Single)...)
				t.Run("enough", func(t *testing.T) { enough(t, c, client, server, full) })
				for _, word := range grants(full) {
					if !effort.Full() {
						break
					}
					t.Run("without "+word, func(t *testing.T) { missing(t, c, client, server, full, word) })
				}
			})
		}
	}
}

// enough checks that everything works under a rule, without a refusal of a needed command, and that
// nothing works with other names.
func enough(t *testing.T, c ruleCase, client clients.Client, server *redistest.Server, full []string) {
	setUser(t, server, c.user, full)
	drv, err := dial(t, client, c.user, alone(server))
	check.Must(t, err)
	done := strategies[c.strategy].run(t, drv, c.prefix, patience)
	done.renewByHold(locker.Request{Name: c.prefix + "watched", Fenced: true})
	check.OK(t, errors.Join(done.errs...))
	check.EqualSlices(t, "the server refused", slices.DeleteFunc(denied(t, server), isNoise), nil)
	for _, fenced := range []bool{false, true} {
		_, err := done.locks.Acquire(t.Context(), locker.Request{Name: "other:" + c.prefix, Fenced: fenced})
		if driver.CodeOf(err) != "NOPERM" || !driver.NotExecuted(err) || errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("a name of others: %v; want NOPERM and nothing else", err)
		}
	}
}

// One rule is enough for names with a hash tag and without.
func TestACLForBothKindsOfNames(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	for _, client := range effort.Of(clients.All[:1], clients.All[:1], clients.WithFork) {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			full := append(rule(t, "mixed"), alsoNeeded(t, client.Name, drivertest.Single)...)
			for _, prefix := range []string{"lock:", "lock:{tag}:"} {
				server.MustCommand(t, "ACL", "LOG", "RESET")
				enough(t, ruleCase{"mixed", "single", prefix}, client, server, full)
			}
		})
	}
}

// Without the right to publish and subscribe, locks work and waiters poll. Without the right to the
// counter, locks work without a fencing token.
func TestACLThatAllowsLess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	for user, without := range map[string][]string{
		"deaf": {"+publish", "+subscribe", "+unsubscribe", "&{lock:*}:wake*", "+zadd", "+zrange"}, "unfenced": {"~{lock:*}:fence"},
	} {
		setUser(t, server, user, slices.DeleteFunc(append(rule(t, "single"), "+client|tracking"), func(word string) bool {
			return slices.Contains(without, word)
		}))
		for _, client := range clients.WithFork {
			t.Run(user+"/"+client.Name, func(t *testing.T) {
				t.Parallel()
				drv, err := dial(t, client, user, alone(server))
				check.Must(t, err)
				l := locker.Must(holdfast.New(drv, holdfast.Config{}))
				name := "lock:" + user + client.Name
				lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Fenced: user == "deaf"})
				check.Must(t, err)
				waiting, waited := make(chan struct{}, 1000), make(chan error, 1)
				ctx := locktrace.With(t.Context(), &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) { waiting <- struct{}{} }})
				go func() {
					second, err := l.Acquire(ctx, locker.Request{Name: name, MaxWait: patience})
					waited <- errors.Join(err, second.Release(ctx))
				}()
				<-waiting
				state := locker.Must(locker.Inspect(t.Context(), l, name))
				check.Equal(t, "Fence", state.Fence, lock.Fence())
				check.OK(t, errors.Join(lock.Renew(t.Context(), 0), lock.Release(t.Context()), <-waited))
				if user == "unfenced" {
					_, err := l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true})
					if driver.CodeOf(err) != "NOPERM" || !driver.NotExecuted(err) {
						t.Errorf("fenced: %v; want NOPERM", err)
					}
					check.Must(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: name})))
					check.OK(t, check.ErrOf(locker.Break(t.Context(), l, name)))
				}
			})
		}
	}
}

// wakes reports whether a word is only needed for wake-ups or to count waiters: without it waiters
// poll, and nothing fails. A semaphore needs the commands of sorted sets for its locks.
func (c ruleCase) wakes(word string) bool {
	if c.strategy == "semaphore" {
		return word == "+publish" || word == "+zrank"
	}
	return slices.Contains([]string{"+publish", "+zadd", "+zrange", "+zrank", "+zscore", "+zcount"}, word)
}

// missing checks that something fails without a word, and that the server names it.
func missing(t *testing.T, c ruleCase, client clients.Client, server *redistest.Server, full []string, word string) {
	setUser(t, server, c.user, slices.DeleteFunc(slices.Clone(full), func(w string) bool { return w == word }))
	server.MustCommand(t, "SCRIPT", "FLUSH")
	server.MustCommand(t, "FLUSHALL")
	server.MustCommand(t, "ACL", "LOG", "RESET")
	want := map[byte]string{'+': "command " + word[1:], '~': "key ", '&': "channel "}[word[0]]
	logged := func() bool {
		return slices.ContainsFunc(denied(t, server), func(what string) bool { return begins(what, want) })
	}
	drv, err := dial(t, client, c.user, alone(server))
	if err == nil {
		err = runWithout(t, c, drv, word, logged)
	}
	switch {
	case c.wakes(word): // a release does not fail without wake-ups
		if err != nil && !errors.Is(err, locker.ErrMaxWait) || driver.CodeOf(err) != "" { // nil if the waiter looked after the release
			t.Errorf("got %v; want a waiter who hears of nothing, and no more", err)
		}
	case word == "+unsubscribe" && client.Name != "goredis": // the connection goes instead
		check.OK(t, err)
	case word == "+client|tracking": // NewClient of rueidis or valkey-go failed
		check.Contains(t, "error", fmt.Sprint(err), "NOPERM")
	default:
		check.Equal(t, fmt.Sprintf("code of %v", err), driver.CodeOf(err), "NOPERM")
	}
	check.Eventually(t, fmt.Sprintf("the ACL log names %s", want), logged)
}

// runWithout makes all calls of a strategy, and returns the failed ones. Waiters without wake-ups
// wait for a short time. On a busy machine it may end during an attempt, with a really unknown
// outcome, or before the first, without a refusal. Then runWithout tries again with more time.
func runWithout(t *testing.T, c ruleCase, drv driver.Driver, word string, logged func() bool) error {
	t.Helper()
	wait := hurry
	if word == "+unsubscribe" { // wake-ups do not need it
		wait = patience
	}
	for name := c.prefix; ; name += "again" {
		err := errors.Join(strategies[c.strategy].run(t, drv, name, wait).errs...)
		if wait *= 3; !c.wakes(word) || !errors.Is(err, locker.ErrUnknownOutcome) && logged() || wait > patience {
			return err
		}
	}
}
