package adapter

import (
	"cmp"
	"fmt"
	"net"
	"slices"
)

// slotRange is a range of cluster slots at one master.
type slotRange struct {
	first, last uint16 // the range, both included
	id          string // the node's, or its addr if the server reports none
	addr        string // "host:port"; "" if the cluster does not report the host
}

// slots are the masters of a cluster, in the order of their slots.
type slots []slotRange

// parseSlots reads the reply to CLUSTER SLOTS. It leaves out unreadable parts.
func parseSlots(reply any) (s slots) {
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
		r := slotRange{first: uint16(first), last: uint16(last)} //nolint:gosec // in range
		if host := text(node[0]); host != "" && host != "?" {
			r.addr = net.JoinHostPort(host, fmt.Sprint(node[1]))
		}
		if r.id = r.addr; len(node) > 2 {
			r.id = text(node[2])
		}
		s = append(s, r)
	}
	slices.SortFunc(s, func(a, b slotRange) int { return cmp.Compare(a.first, b.first) })
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

// find returns the range of slot.
func (s slots) find(slot uint16) (slotRange, bool) {
	i, found := slices.BinarySearchFunc(s, slot, func(r slotRange, slot uint16) int {
		switch {
		case r.last < slot:
			return -1
		case r.first > slot:
			return 1
		default:
			return 0
		}
	})
	if !found {
		return slotRange{}, false
	}
	return s[i], true
}

// of returns the range of key's slot.
func (s slots) of(key string) (slotRange, bool) { return s.find(slot(key)) }
