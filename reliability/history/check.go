package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	Kept      Verdict = "kept"      // all promises were kept
	Loss      Verdict = "loss"      // kept, except for a permitted loss of a server's state
	Violation Verdict = "violation" // a promise was broken
	Unknown   Verdict = "unknown"   // the check ran out of time
)

// Result is the result of the check of one name's history.
type Result struct {
	Name       string
	Verdict    Verdict
	Operations int    // calls, Held events and writes
	Checked    int    // operations with a conclusive answer, for the model to explain
	Holds      int    // successful acquires
	Resumes    int    // successful ones
	HandOvers  int    // acquires by a hand-over from another request of the process
	Refusals   int    // refused acquires and upgrades
	Losses     int    // holds known to be lost at a server
	Reason     string // of a violation

	rules  Rules
	events []Event
	info   porcupine.LinearizationInfo
}

// Names splits a history by name. Events without a name are in each.
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

// Check checks the history of one name, as [Settle] returns it. It takes at most about three times
// the timeout; 0: as long as it needs.
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
	broken := cmp.Or(brokenPromise(events), brokenHandOver(events, all, r), outOfOrder(events, all, r), revived(events))
	strict := operations(events, all, r)
	for _, o := range strict {
		if o.Input.(*op).act == fromEvent {
			res.Checked++
		}
	}
	limit := strictLimit(events, timeout)
	verdict := porcupine.CheckOperationsTimeout(model, strict, limit)
	cutShort := verdict == porcupine.Unknown && limit != timeout
	switch {
	case (verdict == porcupine.Illegal || cutShort) && markLosses(events, all, r):
		// The answers about the holds that no server may have lost must still be right.
		verdict = porcupine.CheckOperationsTimeout(model, operations(events, all, r), timeout)
		res.Verdict = Loss
		res.Losses = max(1, countLosses(events, all, r))
	case cutShort: // the loss met no hold
		verdict = porcupine.CheckOperationsTimeout(model, strict, timeout)
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

// strictLimit bounds the check without losses. Overlapping holds, of a semaphore or of one owner, may
// end in many orders; if a loss makes all of them impossible, porcupine tries every one.
func strictLimit(events []Event, timeout time.Duration) time.Duration {
	mayLose := slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Lose })
	if mayLose && (timeout == 0 || timeout > maxStrict) {
		return maxStrict
	}
	return timeout
}

// maxStrict bounds the strict check of a history with possible losses.
const maxStrict = 3 * time.Second

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

// operations translates events for porcupine. Events explained by leftovers and inconclusive events
// are left out.
func operations(events []Event, all map[string]*lease, r Rules) []porcupine.Operation {
	left := leftovers(events, all, r)
	rows := map[int]int{} // of the picture, by client
	row := func(client int) int {
		if _, ok := rows[client]; !ok {
			rows[client] = len(rows)
		}
		return rows[client]
	}
	firstLoss := int64(never)
	for _, l := range all {
		firstLoss = min(firstLoss, l.lossFrom)
	}
	var ops []porcupine.Operation
	add := func(o *op, row int, from, to int64) {
		ops = append(ops, porcupine.Operation{ClientId: row, Input: o, Call: from, Return: max(from, to)})
	}
	for _, e := range events {
		o := &op{Event: e, number: -1, lease: all[e.Hold], afterLoss: e.Return >= firstLoss, resumeContext: resumeContextOf(e, events, all, r)}
		if o.lease != nil {
			o.number = o.lease.number
			o.lossMayRaise = r.Model == Reentrant && overlapsPossibleLoss(all, o, o.lease.owner)
		}
		if o.proves(events, all, left, r) {
			s := o.span()
			add(o, row(e.Client), s.from, s.to)
		}
	}
	for _, l := range inOrder(all) {
		byServer := func(a act, s span) {
			add(&op{Event: Event{Hold: l.acquired.Hold}, number: l.number, act: a, lease: l}, len(rows), s.from, min(s.to, never))
		}
		switch {
		case l.ends():
			s := l.end(r)
			byServer(expires, s)
			if l.hasMinHold() && l.released != nil {
				byServer(keepsName, span{l.released.Call, s.to})
			}
		case l.keeps():
			byServer(endsMinHold, l.freed(r))
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

// proves reports whether the answer of an event is conclusive: the model then judges it.
func (o *op) proves(events []Event, all map[string]*lease, left map[string]span, r Rules) bool {
	if o.lease != nil && o.lease.excuses(o.Event) {
		return false
	}
	switch o.Kind {
	case Lose, Abandon, Note:
		return false
	case Write: // also by a lost hold: the store lost nothing
		return o.lease != nil
	case Acquire:
		switch o.Outcome {
		case OK:
			o.mayPrecede = o.explained(left, func(e Event) bool { return e.Owner == o.Owner }, events) || overlapsPossibleLoss(all, o, o.Owner)
			return !o.lease.mayBeLostAt(o.Return)
		case Refused:
			return !r.Crowd && !o.explained(left, nil, events) && !r.leavesToWaiter(o, events) && !overlapsPossibleLoss(all, o, "")
		}
		return false
	case Resume:
		return o.resumes(r)
	case Renew, Held:
		return o.beforeAnyLoss() && o.Outcome != Unsettled && !o.late()
	case Release:
		return o.beforeAnyLoss() && o.lease.successor == nil && (o.Outcome == OK || o.Outcome == Lost && !o.late())
	case Upgrade:
		if o.Outcome == Refused && (r.Crowd || o.explained(left, nil, events) || overlapsPossibleLoss(all, o, "")) {
			return false
		}
	}
	return o.beforeAnyLoss() && o.Outcome != Failed
}

// beforeAnyLoss reports whether no server may have lost o's hold before o returned.
func (o *op) beforeAnyLoss() bool { return o.lease != nil && !o.lease.mayBeLostAt(o.Return) }

// late reports whether the loss was reported after the Deadline. The client then reports one even
// if the server still has the hold.
func (o *op) late() bool { return o.Outcome == Lost && o.Return >= o.lease.deadline }

// explained reports whether the leftover of another call may be the cause of the answer.
func (o *op) explained(left map[string]span, of func(Event) bool, events []Event) bool {
	for _, e := range events {
		if s, ok := left[e.ID]; ok && e.ID != o.ID && (of == nil || of(e)) && s.meets(o.Call, o.Return) {
			return true
		}
	}
	return false
}

// leavesToWaiter reports whether an acquire may have been refused in favour of a waiter.
func (r Rules) leavesToWaiter(o *op, events []Event) bool {
	if !r.Fair && o.NoWait {
		return false
	}
	return r.Woken > 0 && slices.ContainsFunc(events, func(e Event) bool {
		return e.Kind == Acquire && !e.NoWait && e.ID != o.ID && (!e.Shared || !o.Shared) &&
			(span{e.Call, e.Return + int64(r.Woken)}).meets(o.Call, o.Return)
	})
}

// overlapsPossibleLoss reports whether a hold of owner, perhaps lost at a server, existed during o.
// An empty owner stands for any.
func overlapsPossibleLoss(all map[string]*lease, o *op, owner string) bool {
	for _, l := range all {
		if l.mayBeLost() && (owner == "" || l.owner == owner) && (span{l.earliestBegin, l.latestEnd}).meets(o.Call, o.Return) {
			return true
		}
	}
	return false
}

// explain repeats the check to get the data of the picture.
func explain(model porcupine.Model, ops []porcupine.Operation, timeout time.Duration) porcupine.LinearizationInfo {
	if timeout == 0 {
		timeout = math.MaxInt64
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, timeout)
	return info
}

// reason describes the longest order of calls that explains their answers, and its last operation.
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
