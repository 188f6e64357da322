//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Errors name the user's own input, and a remedy.
func TestErrorsInWordsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	s := shared.Get(t)
	s.MustCommand(t, "HSET", "words:hash", "a", "b")
	s.MustCommand(t, "HSET", "WRONGPASS:hash", "a", "b")
	locked := redistest.Start(t, redistest.Options{Password: "sesame"})
	silent := at("127.0.0.1:1")
	const seeWho, seeRun = "\nUsage: holdfast who NAME [flags]\nSee: holdfast help who\n",
		"\nUsage: holdfast run NAME [flags] -- COMMAND [ARGS...]\nSee: holdfast help run\n"
	const noPassword = "\nPut the password into HOLDFAST_PASSWORD, or into a file and its name into --password-file.\n"
	const wrongPassword = "\nCorrect the password (HOLDFAST_PASSWORD, --password-file), or the user in the URL.\n"
	for _, test := range []struct {
		args   string
		env    []string
		status int
		want   string // start of standard error
	}{
		{"who", silent, statusUsage, "who takes one NAME, and none was given" + seeWho},
		{"who a b", silent, statusUsage, `who takes one NAME, and 2 were given: ["a" "b"]` + seeWho},
		{"ls a b", silent, statusUsage, `ls takes at most one PATTERN, and 2 were given: ["a" "b"]`},
		{"bench x", silent, statusUsage, `bench takes no arguments, and 1 were given: ["x"]`},
		{"who words:fence", silent, statusUsage, `NAME: "words:fence"; want one that does not end in :fence, as the lock's own keys do` + seeWho},
		{"run words --ttl 1ms -- true", silent, statusUsage, "--ttl 1ms: want 3ms to 576h (24 days)" + seeRun},
		{"run words --ttl -1s -- true", silent, statusUsage, "--ttl -1s: want 3ms to 576h (24 days)" + seeRun},
		{"leader words --ttl 900h -- true", silent, statusUsage, "--ttl 900h0m0s: want 3ms to 576h (24 days)\n"},
		{"run words --ttl 1m --min-hold 1h -- true", silent, statusUsage, "--min-hold: 1h0m0s; want at most --ttl, 1m0s" + seeRun},
		{"run words --note " + strings.Repeat("x", 2000) + " -- true", silent, statusUsage, "--note: 2000 bytes; want at most 1024 bytes" + seeRun},
		{"release --force words", at(s.Addr()), statusFree, "release \"words\": lock is not held\n"},
		{"who words:hash", at(s.Addr()), statusFailed, "who \"words:hash\": key \"words:hash\" holds a hash that is no lock\n"},
		{"who WRONGPASS:hash", at(s.Addr()), statusFailed, "who \"WRONGPASS:hash\": key \"WRONGPASS:hash\" holds a hash that is no lock\n"},
		{"who words --client goredis", at(locked.Addr()), statusDenied, `who "words": login refused: the server asks for a password` + noPassword},
		{"watch words --client redigo", at(locked.Addr()), statusDenied, `watch "words": login refused: the server asks for a password` + noPassword},
		{"release --force words --client rueidis", at(locked.Addr()), statusDenied, `release "words": login refused: the server asks for a password` + noPassword},
		{"ls", at(locked.Addr()), statusDenied, `scan: login refused: the server asks for a password` + noPassword},
		{"leader words -- true", at(locked.Addr()), statusDenied, `acquire "words": login refused: the server asks for a password` + noPassword},
		{"run words -- true", at(locked.Addr()), statusDenied, `acquire "words": login refused: the server asks for a password` + noPassword},
		{"run words --client rueidis -- true", at(":sesam@" + locked.Addr()), statusDenied, `acquire "words": login refused: WRONGPASS invalid username-password pair or user is disabled.` + wrongPassword},
		{"who words", at("me:sesame@" + locked.Addr()), statusDenied, `who "words": login refused: WRONGPASS invalid username-password pair or user is disabled.` + wrongPassword},
	} {
		t.Run(test.args[:min(len(test.args), 60)], func(t *testing.T) {
			t.Parallel()
			_, errs, status := run(t, test.env, strings.Fields(test.args)...)
			if status != test.status || !strings.HasPrefix(errs, "holdfast: "+test.want) {
				t.Errorf("status %d:\n%swant %d and\nholdfast: %s", status, errs, test.status, test.want)
			}
		})
	}
}

// A key of another strategy is an error that names the flag.
func TestOtherStrategyHint(t *testing.T) {
	t.Parallel()
	env := here(t)
	must(t, env, "run", "other", "--strategy", "reentrant", "--min-hold", "1h", "--", "true")
	const hint = "\nIf it is a lock, name its strategy by --strategy: holdfast who shows it.\n"
	for _, args := range []string{"run other -- true", "run other --strategy rwhash -- true", "run other --strategy semaphore:2 -- true", "who other --strategy semaphore:2"} {
		_, errs, status := run(t, env, strings.Fields(args)...)
		if status != statusFailed || !strings.HasSuffix(errs, hint) {
			t.Errorf("%s: status %d: %s", args, status, errs)
		}
	}
}

// A certificate with another name, or without trust, is an error that names the flag.
func TestCertificateHint(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{TLS: redistest.ServerTLS})
	env := []string{"HOLDFAST_URL=rediss://" + s.Addr()}
	for i, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--tls-ca", caFile(t, s), "--tls-name", "redis.example.org"},
			"The certificate is for localhost, 127.0.0.1: if that is the server, give one of its names by --tls-name.\n"},
		{nil, "If the certificate is signed by an authority of your own, give its file by --tls-ca.\n"},
	} {
		for _, client := range clientsFor(i) {
			args := append([]string{"who", "certificate", "--client", client}, test.args...)
			if _, errs, status := run(t, env, args...); status != statusFailed || !strings.HasSuffix(errs, test.want) {
				t.Errorf("%q: status %d: %s", args, status, errs)
			}
		}
	}
}
