package grafana_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series are the labels of the available series, by name: a histogram is three.
type series map[string][]string
