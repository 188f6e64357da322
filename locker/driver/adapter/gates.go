package adapter

import "strings"

// SlotGates bound the calls of a client that sends to several servers and does not report to which:
// there is one [Gate] for every 256 slots of a cluster. A frozen server delays calls to another
// server only if the two share a gate.
type SlotGates [64]*Gate

// NewSlotGates returns SlotGates with n places each.
func NewSlotGates(n int) *SlotGates {
	g := new(SlotGates)
	for i := range g {
		g[i] = NewGate(n)
	}
	return g
}

// Of returns the gate of key.
func (g *SlotGates) Of(key string) *Gate { return g[slot(key)/256] }

// slot returns the cluster slot of key.
func slot(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0) // CRC16, XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
