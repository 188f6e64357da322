package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// asProgram makes the test binary be the program.
const asProgram = "HOLDFAST_QUICKSTART"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// program runs the quickstart as a user does.
func program(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func checkRun(t *testing.T, args ...string) {
	t.Helper()
	out, errs, status := program(t, args...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, standard error %q, output:\n%s", status, errs, out)
	}
	for _, want := range []string{
		`go-redis +holds +fence \d+, waited`, `rueidis +holds +fence \d+, waited`, `redigo +holds +fence \d+, waited`,
		`waits +for (go-redis|rueidis|redigo), round \d`, `(?m)^total +12 rounds counted, 12 made: right\.`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output has nothing like %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, " counts "); n != 12 {
		t.Errorf("%d rounds are told of, want 12:\n%s", n, out)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	checkRun(t)
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	checkRun(t, "-redis", "redis://"+redistest.Start(t, redistest.Options{}).Addr())
}

func TestRealServerWithPassword(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	addr := redistest.Start(t, redistest.Options{Password: "sesame"}).Addr()
	checkRun(t, "-redis", "redis://:sesame@"+addr)

	out, errs, status := program(t, "-redis", "redis://:guess@"+addr)
	oneClearLine(t, out, errs, status, "WRONGPASS")
	if strings.Contains(out+errs, "guess") {
		t.Errorf("the password was printed: %s%s", out, errs)
	}
}

func TestWrongAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://127.0.0.1:1":            "connection refused",
		"127.0.0.1:6379":                 "is not of the form",
		"redis://no-such-host.invalid:1": "no-such-host.invalid",
		"http://127.0.0.1:1":             "is not of the form",
	} {
		out, errs, status := program(t, "-redis", url)
		oneClearLine(t, out, errs, status, want)
	}
}

func oneClearLine(t *testing.T, out, errs string, status int, want string) {
	t.Helper()
	if status != 1 || out != "" || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "quickstart: ") || !strings.Contains(errs, want) {
		t.Errorf("status %d, output %q, standard error %q; want status 1 and one line with %q", status, out, errs, want)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-rounds", "0"}, {"stray"}} {
		if _, errs, status := program(t, args...); status != 2 || errs == "" {
			t.Errorf("%v: status %d, standard error %q; want 2 and a hint", args, status, errs)
		}
	}
}
