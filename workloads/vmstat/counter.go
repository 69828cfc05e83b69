package vmstat

// Delta is how far a counter that only grows went from a to b. A counter that
// fell may have wrapped at 2^bits: that is believed only when a and b fit into
// bits and no more than one wrap fits into most, the largest growth possible in
// the time between. Otherwise the growth is unknown, and why says so.
func Delta(a, b uint64, bits uint, most float64) (d uint64, why string) {
	if b >= a {
		return b - a, ""
	}
	size := uint64(1) << bits
	switch {
	case a >= size:
		return 0, "it fell, and is too large to have wrapped"
	case most >= float64(size):
		return 0, "it fell, and so much can have passed that the number of wraps is open"
	}
	d = size - a + b
	if float64(d) > most {
		return 0, "it fell, and a wrap would mean more than is possible in that time"
	}
	return d, ""
}

// Delta32 is Delta for a counter known to be 32 bits wide. Growth is then
// unknown too when it rose but could have wrapped in between.
func Delta32(a, b uint64, most float64) (d uint64, why string) {
	if most >= 1<<32 {
		return 0, "so much can have passed that the number of wraps is open"
	}
	return Delta(a, b, 32, most)
}
