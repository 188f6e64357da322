package suite_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// The strategies of this repository are proved on every kind of server.
func TestKinds(t *testing.T) {
	t.Parallel()
	if !slices.Equal(clients.Kinds, suite.AllKinds) {
		t.Errorf("cases run on %q, and strategies are proved on %q", suite.AllKinds, clients.Kinds)
	}
}
