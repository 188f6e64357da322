package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

func checkRun(t *testing.T, args ...string) {
	t.Helper()
	out := program.MustRun(t, args...)
	for _, want := range []string{
		`go-redis +holds +fence \d+, waited`, `rueidis +holds +fence \d+, waited`, `redigo +holds +fence \d+, waited`,
		`waits +for (go-redis|rueidis|redigo), round \d`, `(?m)^total +12 rounds counted, 12 made: right\.`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output has nothing like %q:\n%s", want, out)
		}
	}
	check.Equal(t, "rounds in "+out, strings.Count(out, " counts "), 12)
}

// A refusal without a name is not printed: a holder may have released in between.
func TestHolderOf(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"redigo, round 1": &locker.ContentionError{Owner: "redigo", Note: "round 1"},
		"":                &locker.ContentionError{},
	} {
		check.Equal(t, fmt.Sprintf("holderOf(%v)", err), holderOf(err), want)
	}
	check.Equal(t, "holderOf(nil)", holderOf(nil), "")
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	checkRun(t)
}

func TestRealServerWithPassword(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	addr := redistest.Start(t, redistest.Options{Password: "sesame"}).Addr()
	checkRun(t, "-redis", "redis://:sesame@"+addr)
	wrong := []string{"-redis", "redis://:guess@" + addr}
	fails(t, "WRONGPASS", wrong...)
	if out, errs, _ := program.Run(t, wrong...); strings.Contains(out+errs, "guess") {
		t.Errorf("the password was printed: %s%s", out, errs)
	}
}

func TestWrongAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://127.0.0.1:1":            "connection refused",
		"127.0.0.1:6379":                 "-redis takes redis://",
		"redis://no-such-host.invalid:1": "no-such-host.invalid",
		"http://127.0.0.1:1":             "-redis takes redis://",
	} {
		fails(t, want, "-redis", url)
	}
}

func fails(t *testing.T, want string, args ...string) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("output of %v before it fails", args), program.Fails(t, "quickstart", want, args...), "")
}

func TestUsage(t *testing.T) {
	t.Parallel()
	program.Misused(t, "-rounds", "0")
	program.Misused(t, "stray")
}
