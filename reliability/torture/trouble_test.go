package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// at returns a time of a round on the common clock.
func at(seconds float64) int64 { return int64(seconds * float64(time.Second)) }

// cyclesOf returns the events of a client with so many acquires a second.
func cyclesOf(client int, name string, rate, from, to float64) []history.Event {
	var events []history.Event
	for t := from; t < to; t += 1 / rate {
		events = append(events, history.Event{
			//realtime:ok a value, no lease
			Name: "cycler." + name, Client: client, Kind: history.Acquire, Outcome: history.OK, Call: at(t), Return: at(t + 0.5/rate), TTL: longLease,
		})
	}
	return events
}

// pings returns the events of a client whose pings take each.
func pings(client int, each, from, to float64) []history.Event {
	var events []history.Event
	for t := from; t < to; t += each {
		events = append(events, history.Event{Name: "pinger.", Client: client, Kind: history.Note, Outcome: history.OK, Call: at(t), Return: at(t + each)})
	}
	return events
}

// Complaints are about losses, errors and lower rates of bystanders, and nothing else.
func TestContainment(t *testing.T) {
	t.Parallel()
	c := containment{
		start: 0, from: at(4), to: at(8), end: at(14), recovery: 2 * time.Second, distance: 40 * time.Millisecond,
		spared:  func(name string) bool { return !strings.Contains(name, "struck") },
		servers: 2,
		role: func(name string) role {
			of, _, _ := strings.Cut(name, ".")
			return role(of)
		},
	}
	hold := func(name string, ttl time.Duration, outcome history.Outcome, call, end float64) []history.Event {
		return []history.Event{
			{Name: name, Kind: history.Acquire, Outcome: history.OK, Hold: name, TTL: ttl},
			{Name: name, Kind: history.Release, Outcome: outcome, Hold: name, Call: at(call), Return: at(end)},
		}
	}
	acquire := func(name string, outcome history.Outcome, call, end float64) []history.Event {
		return []history.Event{{Name: name, Kind: history.Acquire, Outcome: outcome, Call: at(call), Return: at(end)}}
	}
	type test struct {
		events []history.Event
		want   []string // a part of each complaint
	}
	check.Each(t, map[string]test{
		"all is well":                          {slices.Concat(hold("a", shortLease, history.OK, 13, 14), cyclesOf(0, "a", 10, 0, 14)), nil},
		"a lock is lost":                       {hold("a", shortLease, history.Lost, 7, 7), []string{"release of a"}},
		"a lock on the frozen server is lost":  {hold("struck", shortLease, history.Lost, 7, 7), nil},
		"one with a lease that is long enough": {hold("struck", longLease, history.Lost, 7, 7), []string{"release of struck"}},
		"an error":                             {acquire("a", history.Unsettled, 5, 6), []string{"acquire of a by goredis"}},
		"a refusal":                            {acquire("a", history.Refused, 5, 6), []string{"acquire of a"}},
		"an error while clients connect":       {acquire("a", history.Unsettled, 0, 0.5), nil},
		"an error at the frozen server":        {acquire("struck", history.Unsettled, 5, 6), nil},
		"an error there before":                {acquire("struck", history.Unsettled, 2, 3), []string{"acquire of struck"}},
		"an error there long after":            {acquire("struck", history.Unsettled, 11, 12), []string{"acquire of struck"}},
		"hardly slower":                        {slices.Concat(cyclesOf(1, "a", 10, 0, 4), cyclesOf(1, "a", 7, 4, 14)), nil},
		"at half of the rate from then on":     {slices.Concat(cyclesOf(1, "a", 10, 0, 4), cyclesOf(1, "a", 5.5, 4, 14)), []string{"each acquires 5.50 times a second after it"}},
		"slower for the time of the trouble": {slices.Concat(
			cyclesOf(1, "a", 10, 0, 4), cyclesOf(1, "a", 4.5, 4, 8), cyclesOf(1, "a", 10, 8, 14), cyclesOf(0, "b", 10, 0, 14),
		), []string{"rueidis, spared: true: each acquires 4.57 times a second during the trouble, 10.00 before"}},
		"slower from then on":            {slices.Concat(cyclesOf(1, "a", 10, 0, 10), cyclesOf(1, "a", 3, 10, 14)), []string{"times a second after it, 10.00 before"}},
		"not at all":                     {cyclesOf(2, "a", 10, 0, 4), []string{"redigo, spared: true: each acquires 0.00 times a second during", "after it"}},
		"at the frozen server":           {slices.Concat(cyclesOf(1, "struck", 10, 0, 4), cyclesOf(1, "struck", 10, 8, 14)), nil},
		"and not back when it should be": {cyclesOf(1, "struck", 10, 0, 4), []string{"rueidis, spared: false: each acquires 0.00 times a second after it"}},
		"one client of three gets nothing": {slices.Concat(
			cyclesOf(1, "a", 10, 0, 14), cyclesOf(4, "b", 10, 0, 14), cyclesOf(7, "c", 10, 0, 4),
		), nil},
	}, func(t *testing.T, tc test) {
		for _, machine := range []struct {
			name  string
			pings []history.Event
			busy  bool
			blind bool // it sees nothing at all
		}{
			{"idle", pings(0, 0.05, 0, 14), false, false},
			{"with a server that is frozen", slices.Concat(pings(0, 0.05, 0, 14), pings(1, 0.05, 0, 4)), false, false},
			{"busy for a while", slices.Concat(pings(0, 0.05, 0, 9), pings(0, 0.08, 9, 11), pings(0, 0.05, 11, 14)), true, false},
			{"stopped for a while", slices.Concat(pings(0, 0.05, 0, 9), pings(0, 0.05, 12, 14)), true, true},
		} {
			want := slices.DeleteFunc(slices.Clone(tc.want), func(w string) bool {
				return machine.blind || machine.busy && !strings.HasPrefix(w, "acquire of") && !strings.HasPrefix(w, "release of")
			})
			got, busy := c.check(slices.Concat(tc.events, machine.pings))
			ok := len(got) == len(want) && busy == machine.busy
			for i, w := range want {
				ok = ok && strings.Contains(got[i], w)
			}
			if !ok {
				t.Errorf("%s: %q, busy: %v; want %q", machine.name, got, busy, want)
			}
		}
	})
}

// A full pipe blocks until it is not full.
func TestPipe(t *testing.T) {
	t.Parallel()
	var p pipe
	write := func() { check.OK(t, check.ErrOf(fmt.Fprintln(&p, "a line"))) }
	write()
	start := time.Now()
	p.full.Extend(50 * time.Millisecond)
	p.full.Extend(time.Millisecond) // this shortens nothing
	write()
	check.AtLeast(t, "time to write", time.Since(start), 50*time.Millisecond)
	check.Equal(t, "it is full", p.full.On(), false)
}
