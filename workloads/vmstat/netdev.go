package vmstat

import (
	"strconv"
	"strings"
)

// NetCounters are the counters of one interface in /proc/net/dev.
type NetCounters struct {
	RxBytes, RxPackets, TxBytes, TxPackets uint64
}

// ReadNetDev reads /proc/net/dev; lines that make no sense are left out. Name
// and first number may touch.
func ReadNetDev(text []byte) map[string]NetCounters {
	all := map[string]NetCounters{}
	for _, line := range strings.Split(string(text), "\n") {
		colon := strings.LastIndexByte(line, ':') // "eth0:1" is a name as well
		if colon < 0 {
			continue
		}
		f := strings.Fields(line[colon+1:])
		if len(f) < 10 {
			continue
		}
		var n [4]uint64
		bad := false
		for i, col := range []int{0, 1, 8, 9} {
			v, err := strconv.ParseUint(f[col], 10, 64)
			bad = bad || err != nil
			n[i] = v
		}
		if !bad {
			all[strings.TrimSpace(line[:colon])] = NetCounters{n[0], n[1], n[2], n[3]}
		}
	}
	return all
}

// Received is how many bytes came in between two readings, seconds apart, over a
// link of bytesPerSecond, on a kernel with 32-bit counters or not. When that is
// open, why says so and the number means nothing.
func Received(a, b NetCounters, seconds, bytesPerSecond float64, is32 bool) (bytes uint64, why string) {
	return moved(a.RxBytes, b.RxBytes, a.RxPackets, b.RxPackets, seconds*bytesPerSecond, is32)
}

// Sent is Received for the other direction.
func Sent(a, b NetCounters, seconds, bytesPerSecond float64, is32 bool) (bytes uint64, why string) {
	return moved(a.TxBytes, b.TxBytes, a.TxPackets, b.TxPackets, seconds*bytesPerSecond, is32)
}

func moved(a, b, packetsA, packetsB uint64, most float64, is32 bool) (uint64, string) {
	if a == b && packetsA != packetsB {
		return 0, "packets passed while the byte counter stood still: it is saturated"
	}
	if is32 {
		return Delta32(a, b, most)
	}
	if b < a {
		return 0, "a 64-bit counter fell: the interface was reset"
	}
	return b - a, ""
}
