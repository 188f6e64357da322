//go:build unix

package work

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, info string
		want       counters
		bad        bool
	}{
		{"locks", "# Stats\r\ntotal_reads_processed:12\r\n# Commandstats\r\ncmdstat_set:calls=3,usec=9\r\ncmdstat_evalsha:calls=4,usec=2\r\n", counters{7, 12}, false},
		{"what connections send", "cmdstat_set:calls=3,usec=1\r\ncmdstat_info:calls=9,usec=1\r\ncmdstat_client|setinfo:calls=5,usec=1\r\n", counters{3, 0}, false},
		{"no statistics", "# Stats\r\n", counters{}, true},
		{"no number", "cmdstat_set:calls=x\r\n", counters{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(c.info)
			if bad := err != nil; bad != c.bad || !bad && got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}
