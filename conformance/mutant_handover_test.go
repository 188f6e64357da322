package conformance

import "testing"

func TestMutantsThatHandOver(t *testing.T) {
	t.Parallel()
	m, counting := mutants{T: t}, oneKey
	lua("mint(by_clock)", "mint(by_count)")(&counting)
	counting.transfers = true
	for name, mutate := range map[string]func(*algorithm){
		"a hand-over that forgets how much of the lease is left": func(a *algorithm) { a.fullLease = true },
		"a hand-over whose fencing tokens are given again":       func(a *algorithm) { a.forgetsFences = true },
	} {
		flawed := counting
		mutate(&flawed)
		m.add(name, flawed.harness(Capabilities{}), counting.harness(Capabilities{}), "a hand-over is a hold of its own")
	}
	m.convict()
}
