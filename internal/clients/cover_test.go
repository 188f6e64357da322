package clients

import (
	"testing"
)

// cells maps each strategy, client and kind of server that runs to how often it does.
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

// What runs by default, in words.
func TestPairwise(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"reentrant": "goredis: memory; rueidis: single; redigo: cluster; valkey: sentinel",
		"rwhash":    "goredis: sentinel; rueidis: memory; redigo: single; valkey: cluster",
		"watchdog":  "goredis: cluster; rueidis: sentinel; redigo: memory; valkey: single",
		"chain":     "goredis: single; rueidis: cluster; redigo: sentinel; valkey: memory",
		"semaphore": "goredis: memory; rueidis: single; redigo: cluster; valkey: sentinel",
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
		if got != want[strategy] {
			t.Errorf("%s runs on %q, want %q", strategy, got, want[strategy])
		}
	}
}

// By default every pair of values of two dimensions occurs, and each strategy runs once on each
// kind of server. The full product has each cell once, and so all that runs by default.
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
				if n := full[[3]string{strategy, name, kind}]; n != 1 {
					t.Errorf("in the full product %s runs over %s on %s %d times", strategy, name, kind, n)
				}
			}
		}
	}
	if product := len(strategies) * len(names) * len(Kinds); len(full) != product {
		t.Errorf("the full product has %d cells, want %d", len(full), product)
	}
	for cell := range pairwise {
		if full[cell] == 0 {
			t.Errorf("%v runs by default and not in the full product", cell)
		}
	}
}

func TestModes(t *testing.T) {
	for mode, want := range map[string]int{"": len(Kinds), "full": len(Kinds) * len(WithFork)} {
		t.Setenv("HOLDFAST_TEST", mode)
		n := 0
		for _, c := range Cover(t, "rwhash") {
			n += len(c.On)
		}
		if n != want {
			t.Errorf("HOLDFAST_TEST=%q: rwhash has %d cells, want %d", mode, n, want)
		}
	}
}
