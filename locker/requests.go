package locker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
)

// bounds returns the strictest bounds of reqs: the shortest MaxWait, zero if there is none, and
// whether one has NoWait.
func bounds(reqs []Request) (wait time.Duration, noWait bool) {
	for _, req := range reqs {
		wait, noWait = shorter(wait, req.MaxWait), noWait || req.NoWait
	}
	return wait, noWait
}

// shorter returns the shorter one of two bounds; zero is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// sortRequests returns reqs in the order of their names, with one request for each name.
func sortRequests(reqs []Request, caller string) (sorted []Request, err error) {
	if len(reqs) == 0 {
		return nil, opError("acquire", "", argument.Invalid(caller+" requests", "none", "1 to 64 names"))
	}
	for _, req := range reqs {
		err := req.Validate()
		if err == nil && !req.Resume.IsZero() {
			err = argument.Invalid("Request.Resume", "a Handle", "none in "+caller+"; Resume takes a hold over")
		}
		if err != nil {
			return nil, opError("acquire", req.Name, err)
		}
	}
	byName := slices.Clone(reqs)
	slices.SortStableFunc(byName, func(a, b Request) int { return strings.Compare(a.Name, b.Name) })
	for _, req := range byName {
		last := len(sorted) - 1
		if last < 0 || sorted[last].Name != req.Name {
			sorted = append(sorted, req)
			continue
		}
		if sorted[last], err = mergeRequests(sorted[last], req); err != nil {
			return nil, opError("acquire", req.Name, err)
		}
	}
	if len(sorted) > maxNames {
		return nil, opError("acquire", "",
			argument.Invalid(caller+" requests", fmt.Sprintf("%d names", len(sorted)), "1 to 64 names"))
	}
	return sorted, nil
}

// mergeRequests merges two requests for one name. It fails if they differ in a field it cannot
// merge.
func mergeRequests(a, b Request) (Request, error) {
	merged := a
	if b.Mode == Exclusive {
		merged.Mode = Exclusive
	}
	merged.MinHold = max(a.MinHold, b.MinHold)
	if merged.TTL = max(a.TTL, b.TTL); merged.TTL != 0 { // one without a TTL may have the longer MinHold
		merged.TTL = max(merged.TTL, merged.MinHold)
	}
	merged.MaxWait = shorter(a.MaxWait, b.MaxWait)
	merged.NoWait = a.NoWait || b.NoWait
	merged.Fenced = a.Fenced || b.Fenced
	merged.Permits = max(a.Permits, b.Permits)
	if a.Owner == "" {
		merged.Owner = b.Owner
	}
	if a.Note == "" {
		merged.Note = b.Note
	}
	switch {
	case b.Owner != "" && b.Owner != merged.Owner:
		return Request{}, argument.Invalid("Request.Owner", "two for one name", "one owner for each name")
	case restOf(a) != restOf(b):
		return Request{}, argument.Invalid("Request", "two for one name that cannot be merged",
			"ones that differ in Mode, TTL, MinHold, MaxWait, NoWait, Fenced and Note")
	case max(a.Permits, 1) != max(b.Permits, 1):
		return Request{}, argument.Invalid("Request.Permits",
			fmt.Sprintf("%d and %d for one name", max(a.Permits, 1), max(b.Permits, 1)),
			"the same for all requests for a name")
	}
	return merged, nil
}

// restOf returns a request with nothing but the fields that mergeRequests cannot merge.
func restOf(r Request) Request {
	r.Mode, r.TTL, r.MinHold, r.MaxWait, r.NoWait, r.Fenced, r.Owner, r.Note, r.Permits = 0, 0, 0, 0, false, false, "",
		"", 0
	return r
}

func firstName(reqs []Request) string {
	if len(reqs) == 0 {
		return ""
	}
	return reqs[0].Name
}
