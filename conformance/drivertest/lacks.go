package drivertest

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var lackCases = []testCase{
	{
		name: "a declared lack returns ErrUnsupported", on: suite.Simulated,
		why: "callers fall back on errors.ErrUnsupported; anything else they take for an outage",
		run: lacksReturnUnsupported,
	},
}

func lacksReturnUnsupported(t *caseT) {
	for _, f := range t.Suite.Lacks {
		target, dials := t.Server.Target, true
		switch f {
		case FeatureCluster:
			target.Kind = Cluster
		case FeatureSentinel:
			target.Kind, target.MasterName = Sentinel, "mymaster"
		case FeatureTLS:
			target.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		default:
			dials = false
		}
		if dials {
			drv, err := t.Suite.Dial(t.TB, target)
			if drv != nil {
				_ = drv.Close() // there should be none
			}
			t.Is(err, errors.ErrUnsupported, "Dial, which lacks %s", f)
		}
		switch drv := t.Driver(); f {
		case FeatureSubscribe:
			_, err := drv.Subscribe(t.Ctx, t.Key())
			t.Is(err, errors.ErrUnsupported, "Subscribe, which is declared missing")
		case FeatureReplicas:
			_, _, err := drv.EvalAcked(t.Ctx, countScript, []string{t.Key()}, nil, 1, time.Millisecond)
			t.Is(err, errors.ErrUnsupported, "EvalAcked, which is declared missing")
			t.Is(err, driver.ErrNotSent, "EvalAcked, which is declared missing")
		case FeatureSharded:
			if got := drv.Delivery(t.Key()); got == driver.DeliverySharded {
				t.Errorf("Delivery is %d, which is declared missing", got)
			}
		}
	}
}
