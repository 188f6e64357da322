package suite

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
)

// A client counts once it has connected and set its name.
func TestCensusSeesIdleConnection(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	s := StartReal(t, redistest.Options{})
	check.Eventually(t, "nobody is connected", func() bool { // not even who waited for its start
		left, err := connections(t.Context(), s)
		return len(left) == 0 && err == nil
	})
	conn, err := net.Dial("tcp", s.Real.Addr())
	check.Must(t, err)
	defer conn.Close()
	locker.Must(io.WriteString(conn, "CLIENT SETNAME idle\r\n"))
	locker.Must(conn.Read(make([]byte, 16)))
	if left, err := connections(t.Context(), s); len(left) != 1 || !strings.Contains(left[0], "name=idle") || err != nil {
		t.Errorf("the census has %q, %v; want the idle connection", left, err)
	}
}

// The census has the keys of the live nodes beside the error of a dead one.
func TestCensusSeesBesideDeadNode(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	s := &Server{Cluster: redistest.StartCluster(t, 2, redistest.Options{})}
	dead, other := s.Cluster.Nodes()[0], s.Cluster.Nodes()[1]
	key := "k"
	for s.Cluster.NodeForKey(key) != other {
		key += "k"
	}
	other.MustCommand(t, "SET", key, "v")
	check.Must(t, dead.Kill())
	if found, err := s.list(t.Context(), "KEYS", "*"); len(found) != 1 || found[0] != key || err == nil {
		t.Errorf("the census has %q, %v; want %q and the dead node's error", found, err, key)
	}
}
