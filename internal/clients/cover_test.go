package clients

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
)

// cells counts the runs of each strategy, client and kind of server.
func cells(squares int) map[[3]string]int {
	ran := map[[3]string]int{}
	for i, strategy := range strategies {
		for _, c := range cover(i, squares) {
			for _, kind := range c.On {
				ran[[3]string{strategy, c.Name, string(kind)}]++
			}
		}
	}
	return ran
}

// The default runs, in words.
func TestPairwise(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"reentrant": "goredis: memory; rueidis: single; redigo: cluster; valkey: sentinel",
		"rwhash":    "goredis: sentinel; rueidis: memory; redigo: single; valkey: cluster",
		"watchdog":  "goredis: cluster; rueidis: sentinel; redigo: memory; valkey: single",
		"chain":     "goredis: single; rueidis: cluster; redigo: sentinel; valkey: memory",
		"semaphore": "goredis: memory; rueidis: single; redigo: cluster; valkey: sentinel",
		"redisson":  "goredis: sentinel; rueidis: memory; redigo: single; valkey: cluster",
	}
	for i, strategy := range strategies {
		got := ""
		for n, c := range cover(i, 1) {
			if n > 0 {
				got += "; "
			}
			got += c.Name + ":"
			for _, kind := range c.On {
				got += " " + string(kind)
			}
		}
		check.Equal(t, strategy+" runs on", got, want[strategy])
	}
}

// By default every pair of values of two dimensions occurs, and each strategy runs once on each
// kind of server. The full product has each cell once, and so contains the default.
func TestCoverage(t *testing.T) {
	t.Parallel()
	names := make([]string, len(WithFork))
	for i, c := range WithFork {
		names[i] = c.Name
	}
	kindNames := make([]string, len(Kinds))
	for i, kind := range Kinds {
		kindNames[i] = string(kind)
	}
	dimensions := [3][]string{strategies, names, kindNames}

	pairwise, full := cells(1), cells(len(WithFork))
	for a, b := range map[int]int{0: 1, 1: 2, 2: 0} {
		for _, x := range dimensions[a] {
			for _, y := range dimensions[b] {
				n := 0
				for cell := range pairwise {
					if cell[a] == x && cell[b] == y {
						n++
					}
				}
				if n == 0 || n > 1 && a == 2 { // a kind of server and a strategy
					t.Errorf("%s and %s occur together %d times", x, y, n)
				}
			}
		}
	}
	for _, strategy := range strategies {
		for _, name := range names {
			for _, kind := range kindNames {
				n := full[[3]string{strategy, name, kind}]
				check.Equal(t, strategy+" over "+name+" on "+kind+" in the full product", n, 1)
			}
		}
	}
	check.Equal(t, "cells of the full product", len(full), len(strategies)*len(names)*len(Kinds))
	for cell := range pairwise {
		check.AtLeast(t, fmt.Sprintf("%v runs by default, and in the full product", cell), full[cell], 1)
	}
}

func TestModes(t *testing.T) {
	for mode, want := range map[string]int{"": len(Kinds), "full": len(Kinds) * len(WithFork)} {
		t.Setenv("HOLDFAST_TEST", mode)
		n := 0
		for _, c := range Cover(t, "rwhash") {
			n += len(c.On)
		}
		check.Equal(t, fmt.Sprintf("HOLDFAST_TEST=%q: cells of rwhash", mode), n, want)
	}
}
