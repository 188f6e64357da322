package redistest

import "strings"

// Slots is the number of hash slots of a cluster.
const Slots = 16384

// Slot returns the hash slot of a key, as CLUSTER KEYSLOT does.
func Slot(key string) int {
	if _, tail, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(tail, "}"); closed && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % Slots
}

// crc16 is CRC-16/XMODEM, as named by the cluster specification.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			high := crc&0x8000 != 0
			crc <<= 1
			if high {
				crc ^= 0x1021
			}
		}
	}
	return crc
}
