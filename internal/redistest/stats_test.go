package redistest

import "testing"

func TestProcessed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, info string
		want       int
		fails      bool
	}{
		{name: "no statistics", info: "# Server\r\n", fails: true},
		{name: "nothing to leave out", info: "total_commands_processed:7\r\ncmdstat_set:calls=6,usec=1\r\n", want: 7},
		{
			name: "pings and INFO", want: 4,
			info: "total_commands_processed:7\r\ncmdstat_ping:calls=2,usec=1\r\ncmdstat_info:calls=1,usec=1\r\n",
		},
	} {
		got, err := processed(tt.info)
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %d, %v; want %d, error %t", tt.name, got, err, tt.want, tt.fails)
		}
	}
}

func TestProcessedOfAServer(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	before := s.Processed(t)
	s.MustCommand(t, "PING")
	s.MustCommand(t, "SET", "k", "v")
	if n := s.Processed(t) - before; n != 1 {
		t.Errorf("%d commands, want 1", n)
	}
}
