package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Verdict is what a check found.
type Verdict string

// The verdicts.
const (
	Kept      Verdict = "kept"      // the promises were kept
	Loss      Verdict = "loss"      // but for what a server lost that may lose its state
	Violation Verdict = "violation" // a promise was broken
	Unknown   Verdict = "unknown"   // the check ran out of time
)

// Result is what the check of one name's history found.
type Result struct {
	Name       string
	Verdict    Verdict
	Operations int    // calls, looks and writes that were recorded
	Checked    int    // those of which the model had to explain the answer; what proves nothing is not among them
	Holds      int    // acquires that succeeded
	Resumes    int    // that succeeded
	HandOvers  int    // acquires that a holder of the same process handed its hold over to
	Refusals   int    // acquires and upgrades that were refused
	Losses     int    // holds that a server is known to have lost
	Reason     string // of a violation

	rules  Rules
	events []Event
	info   porcupine.LinearizationInfo
}

// Names splits a history by name. Losses and notes of all names go to each.
func Names(events []Event) map[string][]Event {
	byName := map[string][]Event{}
	for _, e := range events {
		if e.Name != "" {
			byName[e.Name] = append(byName[e.Name], e)
		}
	}
	for _, e := range events {
		if e.Name == "" {
			for name := range byName {
				byName[name] = append(byName[name], e)
			}
		}
	}
	return byName
}

// Check checks the history of one name, as [Settle] returns it, for at most about three times the
// timeout; 0: for as long as it takes.
func Check(events []Event, r Rules, timeout time.Duration) Result {
	res := Result{rules: r, events: events, Verdict: Kept}
	for _, e := range events {
		if e.Name != "" {
			res.Name = e.Name
		}
		if e.Kind != Lose && e.Kind != Abandon && e.Kind != Note {
			res.Operations++
		}
		switch {
		case e.Kind == Acquire && e.Outcome == OK:
			res.Holds++
			if e.From != "" {
				res.HandOvers++
			}
		case e.Kind == Resume && e.Outcome == OK:
			res.Resumes++
		case e.Outcome == Refused && e.Kind != Write:
			res.Refusals++
		}
	}
	model := r.model()
	all := leases(events, r)
	broken := cmp.Or(brokenPromise(events), brokenHandOver(all, r), outOfOrder(events, all, r), revived(events))
	strict := operations(events, all, r)
	for _, o := range strict {
		if o.Input.(*op).act == asked {
			res.Checked++
		}
	}
	limit := r.strictLimit(events, timeout)
	verdict := porcupine.CheckOperationsTimeout(model, strict, limit)
	if (verdict == porcupine.Illegal || verdict == porcupine.Unknown && limit != timeout) && markDoubts(events, all, r) {
		// There must be nothing wrong with what no server may have lost.
		verdict = porcupine.CheckOperationsTimeout(model, operations(events, all, r), timeout)
		res.Verdict = Loss
		res.Losses = max(1, lost(events, all, r))
	}
	switch {
	case verdict == porcupine.Illegal || broken != "":
		res.Verdict, res.Losses = Violation, 0
		if res.info = explain(model, operations(events, all, r), timeout); broken != "" {
			res.Reason = broken
		} else {
			res.Reason = reason(res.info)
		}
	case verdict == porcupine.Unknown:
		res.Verdict, res.Losses = Unknown, 0
		res.Reason = fmt.Sprintf("the check ran out of its %v", timeout)
	}
	return res
}

// strictLimit bounds the check without losses. The holds of a semaphore that overlap may end in
// many orders, all of which are tried if a loss makes each impossible.
func (r Rules) strictLimit(events []Event, timeout time.Duration) time.Duration {
	lossy := slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Lose })
	if r.Model == Semaphore && lossy && (timeout == 0 || timeout > lossyLimit) {
		return lossyLimit
	}
	return timeout
}

// lossyLimit bounds the strict check of a semaphore's history where a server may have lost its
// state.
const lossyLimit = 3 * time.Second

func (r Rules) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			before, o := s.(state), input.(*op)
			return r.step(before, o)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
}

// operations translates events for porcupine. What is explained by leftovers, or proves nothing, is
// left out.
func operations(events []Event, all map[string]*lease, r Rules) []porcupine.Operation {
	left := leftovers(events, all, r)
	rows := map[int]int{} // of the picture, by client
	row := func(client int) int {
		if _, ok := rows[client]; !ok {
			rows[client] = len(rows)
		}
		return rows[client]
	}
	lossy := int64(never)
	for _, l := range all {
		lossy = min(lossy, l.doubt)
	}
	var ops []porcupine.Operation
	add := func(o *op, row int, from, to int64) {
		ops = append(ops, porcupine.Operation{ClientId: row, Input: o, Call: from, Return: max(from, to)})
	}
	for _, e := range events {
		o := &op{Event: e, number: -1, lease: all[e.Hold], behind: e.Return >= lossy, resumption: resumptionOf(e, events, all, r)}
		if o.lease != nil {
			o.number = o.lease.number
			o.unseen = r.Model == Reentrant && besideShaky(all, o, o.lease.owner)
		}
		if o.proves(events, all, left, r) {
			s := o.span()
			add(o, row(e.Client), s.from, s.to)
		}
	}
	for _, l := range inOrder(all) {
		byItself := func(a act, s span) {
			add(&op{Event: Event{Hold: l.acquired.Hold}, number: l.number, act: a, lease: l}, len(rows), s.from, min(s.to, never))
		}
		switch {
		case l.ends():
			s := l.end(r)
			byItself(lapses, s)
			if l.minHold && l.released != nil {
				byItself(keeps, span{l.released.Call, s.to})
			}
		case l.keeps():
			byItself(frees, l.kept(r))
		}
	}
	return ops
}

func inOrder(all map[string]*lease) []*lease {
	list := make([]*lease, len(all))
	for _, l := range all {
		list[l.number] = l
	}
	return list
}

// proves reports whether the model is to see an event.
func (o *op) proves(events []Event, all map[string]*lease, left map[string]span, r Rules) bool {
	if o.lease != nil && o.lease.excuses(o.Event) {
		return false
	}
	switch o.Kind {
	case Lose, Abandon, Note:
		return false
	case Write: // also by a hold that was lost: the store lost nothing
		return o.lease != nil
	case Acquire:
		switch o.Outcome {
		case OK:
			o.mayGo = o.explained(left, func(e Event) bool { return e.Owner == o.Owner }, events) || besideShaky(all, o, o.Owner)
			return !o.lease.doubtful(o.Return)
		case Refused:
			return !r.Crowd && !o.explained(left, nil, events) && !r.keepsTurn(o, events) && !besideShaky(all, o, "")
		}
		return false
	case Resume:
		return o.resumes(r)
	case Renew, Held:
		return o.sound() && o.Outcome != Unsettled && !o.late()
	case Release:
		return o.sound() && o.lease.heir == nil && (o.Outcome == OK || o.Outcome == Lost && !o.late())
	case Upgrade:
		if o.Outcome == Refused && (r.Crowd || o.explained(left, nil, events) || besideShaky(all, o, "")) {
			return false
		}
	}
	return o.sound() && o.Outcome != Failed
}

// sound reports whether o is about a hold that no server may have lost by then.
func (o *op) sound() bool { return o.lease != nil && !o.lease.doubtful(o.Return) }

// late reports whether the hold was lost when it was to be: its client knows that by itself,
// whatever is left at the server.
func (o *op) late() bool { return o.Outcome == Lost && o.Return >= o.lease.deadline }

// explained reports whether something of another call may have been in the way.
func (o *op) explained(left map[string]span, of func(Event) bool, events []Event) bool {
	for _, e := range events {
		if s, ok := left[e.ID]; ok && e.ID != o.ID && (of == nil || of(e)) && s.meets(o.Call, o.Return) {
			return true
		}
	}
	return false
}

// keepsTurn reports whether an acquire may have been refused for the sake of one who waited.
func (r Rules) keepsTurn(o *op, events []Event) bool {
	kept := r.Intent
	if r.Fair || !o.NoWait {
		kept = max(kept, r.Woken)
	}
	return kept > 0 && slices.ContainsFunc(events, func(e Event) bool {
		return e.Kind == Acquire && !e.NoWait && e.ID != o.ID && (!e.Shared || !o.Shared) &&
			(span{e.Call, e.Return + int64(kept)}).meets(o.Call, o.Return)
	})
}

// besideShaky reports whether a hold of an owner, or of any, that a server may have lost, or may
// bring back, was there.
func besideShaky(all map[string]*lease, o *op, owner string) bool {
	for _, l := range all {
		if l.shaky() && (owner == "" || l.owner == owner) && (span{l.since, l.until}).meets(o.Call, o.Return) {
			return true
		}
	}
	return false
}

// explain repeats the check for a picture.
func explain(model porcupine.Model, ops []porcupine.Operation, timeout time.Duration) porcupine.LinearizationInfo {
	if timeout == 0 {
		timeout = math.MaxInt64
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, timeout)
	return info
}

// reason names the operation at which the longest explanation of a history ends: of those that it
// leaves out, the one that returned first.
func reason(info porcupine.LinearizationInfo) string {
	partitions := info.PartialLinearizationsOperations()
	if len(partitions) == 0 || len(partitions[0]) == 0 {
		return "no order of the calls explains their answers"
	}
	longest := slices.MaxFunc(partitions[0], func(a, b []porcupine.Operation) int { return len(a) - len(b) })
	if len(longest) == 0 {
		return "the first call cannot have had its answer"
	}
	last := longest[len(longest)-1]
	return fmt.Sprintf("no order of the calls explains their answers; the longest one explains %d and ends with %v", len(longest), last.Input)
}
