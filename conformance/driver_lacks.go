package conformance

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

var lackCases = []testCase{
	{
		name: "what is declared missing says so", on: miniOne,
		why: "callers fall back on errors.ErrUnsupported; anything else they take for an outage",
		run: lacksSaySo,
	},
}

func lacksSaySo(t *caseT) {
	for _, f := range t.h.Lacks {
		target, dials := t.srv.target, true
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
			drv, err := t.h.Dial(t.TB, target)
			if drv != nil {
				_ = drv.Close() // it should not be there at all
			}
			t.is(err, errors.ErrUnsupported, "Dial, which lacks %s", f)
		}
		switch drv := t.driver(); f {
		case FeatureSubscribe:
			_, err := drv.Subscribe(t.ctx, t.key())
			t.is(err, errors.ErrUnsupported, "Subscribe, which is declared missing")
		case FeatureReplicas:
			if a, ok := drv.(driver.Acknowledger); ok {
				_, _, err := a.EvalAcked(t.ctx, countScript, []string{t.key()}, nil, 1, time.Millisecond)
				t.is(err, errors.ErrUnsupported, "EvalAcked, which is declared missing")
			}
		case FeatureBatch:
			if b, ok := drv.(driver.Batcher); ok {
				for _, r := range b.EvalMany(t.ctx, []driver.Call{{Script: countScript, Keys: []string{t.key()}}}) {
					t.is(r.Err, errors.ErrUnsupported, "EvalMany, which is declared missing")
				}
			}
		}
	}
}
