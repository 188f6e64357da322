package machines

import (
	"flag"
	"testing"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
)

// checks is rapid's flag: how many walks a test makes.
const checks = "rapid.checks"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == checks })
	if !given {
		if err := flag.Set(checks, effort.Of("10", "12", "100")); err != nil {
			panic(err)
		}
	}
	clients.VerifyNoLeaks(m)
}
