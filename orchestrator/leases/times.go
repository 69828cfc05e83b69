package leases

import "time"

// times of the protocol. Tests make them shorter.
type times struct {
	renew   time.Duration // between two renewals
	ttl     time.Duration // of a lease, from its renewal
	watch   time.Duration // a lease must stay unchanged before it is taken from a process that may live
	poll    time.Duration // between two looks at what is waited for
	queue   time.Duration // ttl of a place in the queue
	mutex   time.Duration // patience with whoever has the folder's lock
	giveUp  time.Duration // to get the folder's lock for one change
	release time.Duration // to give leases back
}

func usualTimes() times {
	return times{renew: 10 * time.Second, ttl: 60 * time.Second, watch: 12 * time.Second, poll: 200 * time.Millisecond,
		queue: 20 * time.Second, mutex: 15 * time.Second, giveUp: 40 * time.Second, release: 20 * time.Second}
}

// clock is how a folder tells the time.
type clock struct {
	now  func() time.Time     // the wall clock, with Go's monotonic reading
	boot func() time.Duration // since the machine's start, sleep included
}

func realClock() clock {
	return clock{now: time.Now, boot: sinceBoot}
}
