package adapter

import (
	"cmp"
	"fmt"
	"net"
	"slices"
)

// SlotRange is a range of cluster slots at one master.
type SlotRange struct {
	First, Last uint16 // the range, both included
	ID          string // the node's, or its Addr if the server reports none
	Addr        string // "host:port"; "" if the cluster does not report the host
}

// Slots are the masters of a cluster, in the order of their slots.
type Slots []SlotRange

// ParseSlots reads the reply to CLUSTER SLOTS. It leaves out unreadable parts.
func ParseSlots(reply any) (s Slots) {
	entries, _ := reply.([]any)
	for _, e := range entries {
		entry, _ := e.([]any) // the first slot, the last one, the master and its replicas
		if len(entry) < 3 {
			continue
		}
		first, ok1 := entry[0].(int64)
		last, ok2 := entry[1].(int64)
		node, ok3 := entry[2].([]any) // host, port and ID
		if !ok1 || !ok2 || !ok3 || first < 0 || first > last || last >= 16384 || len(node) < 2 {
			continue
		}
		r := SlotRange{First: uint16(first), Last: uint16(last)} //nolint:gosec // in range
		if host := text(node[0]); host != "" && host != "?" {
			r.Addr = net.JoinHostPort(host, fmt.Sprint(node[1]))
		}
		if r.ID = r.Addr; len(node) > 2 {
			r.ID = text(node[2])
		}
		s = append(s, r)
	}
	slices.SortFunc(s, func(a, b SlotRange) int { return cmp.Compare(a.First, b.First) })
	return s
}

// text returns a bulk string as clients decode it: a string or bytes.
func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	s, _ := v.(string)
	return s
}

// Find returns the range of slot.
func (s Slots) Find(slot uint16) (SlotRange, bool) {
	i, found := slices.BinarySearchFunc(s, slot, func(r SlotRange, slot uint16) int {
		switch {
		case r.Last < slot:
			return -1
		case r.First > slot:
			return 1
		default:
			return 0
		}
	})
	if !found {
		return SlotRange{}, false
	}
	return s[i], true
}

// Of returns the range of key's slot.
func (s Slots) Of(key string) (SlotRange, bool) { return s.Find(slot(key)) }
