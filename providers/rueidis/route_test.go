package rueidis

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	const moment = time.Nanosecond
	type test struct {
		c    condition
		want route
	}
	check.Each(t, map[string]test{
		"all is well":                {condition{warm: true}, direct},
		"not warm":                   {condition{}, detached},
		"in a hurry":                 {condition{warm: true, hurried: true}, detached},
		"urgent, and all is well":    {condition{warm: true, urgent: true}, direct},
		"a moment ago":               {condition{overdue: doubt - moment}, detached},
		"not for long":               {condition{overdue: doubt}, spare},
		"nearly long enough":         {condition{overdue: silence - moment}, spare},
		"long enough":                {condition{overdue: silence}, pooled},
		"nearly long enough, urgent": {condition{overdue: urgentSilence - moment, urgent: true}, spare},
		"long enough, urgent":        {condition{overdue: urgentSilence, urgent: true}, pooled},
	}, func(t *testing.T, tt test) {
		check.Equal(t, "route", choose(tt.c), tt.want)
	})
}

func TestOverdue(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type test struct {
		now, sent, replied, newest time.Duration
		want                       time.Duration
	}
	check.Each(t, map[string]test{
		"no reply ever":                           {9 * s, 4 * s, 0, 0, 5 * s},
		"the last reply before it was sent":       {9 * s, 4 * s, 3 * s, 2 * s, 5 * s},
		"a reply since, to an earlier command":    {9 * s, 4 * s, 7 * s, 2 * s, 2 * s},
		"a reply just now, to an earlier command": {9 * s, 4 * s, 9 * s, 3 * s, 0},
		"a reply since, to a later command":       {9 * s, 4 * s, 7 * s, 5 * s, 5 * s},
		"a reply just now, to a later command":    {9 * s, 4 * s, 9 * s, 8 * s, 5 * s},
		"a reply that came after now was read":    {9 * s, 4 * s, 9*s + 1, 3 * s, 0},
	}, func(t *testing.T, tt test) {
		check.Equal(t, "overdue for", overdue(tt.now, tt.sent, tt.replied, tt.newest), tt.want)
	})
}
