package isolation

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/internal/clients"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis writes a line for each refused connection
	clients.VerifyNoLeaks(m)
}
