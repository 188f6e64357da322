package conformance

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/conformance/internal/respdriver"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain dials without a client library.
func plain(_ TB, target Target) (driver.Driver, error) {
	return respdriver.New(respdriver.Config{
		Addrs: target.Addrs, Cluster: target.Kind == Cluster, MasterName: target.MasterName,
		Username: target.Username, Password: target.Password, TLS: target.TLS,
	}), nil
}
