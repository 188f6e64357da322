package conformance

import (
	"strings"
	"testing"
)

func TestMutantsThatHandOver(t *testing.T) {
	t.Parallel()
	counting := oneKey
	counting.acquire = strings.Replace(luaStringAcquire, "mint(by_clock)", "mint(by_count)", 1)
	counting.transfers = true
	var suspects []suspect
	for _, m := range []struct {
		name   string
		mutate func(*algorithm)
	}{
		{"a hand-over that forgets how much of the lease is left", func(a *algorithm) { a.fullLease = true }},
		{"a hand-over whose fencing tokens are given again", func(a *algorithm) { a.forgetsFences = true }},
	} {
		flawed := counting
		m.mutate(&flawed)
		suspects = append(suspects, suspect{
			m.name, flawed.harness(Capabilities{}), counting.harness(Capabilities{}), []string{"a hand-over is a hold of its own"},
		})
	}
	convict(t, suspects)
}
