package single_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/clients"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }
