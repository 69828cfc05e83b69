package agent

import (
	"strconv"
	"syscall"
	"unsafe"
)

// The wakeup probe is two processes joined by a pipe. The waker sleeps to an
// absolute, random schedule and writes the time into the pipe; the sleeper is
// blocked in read(2) and notes how long after that it runs. Both are forks with
// one thread (alone), use raw system calls, and allocate nothing.
//
// Descriptors of both: 3 the pipe, 4 where the results go: one byte when ready,
// and everything at the end. The waker has 5 as well: a byte starts it, the end
// of the file ends it.

// woke is what the waker keeps of one wakeup.
type woke struct {
	intended, late, cpu int64 // ns of CLOCK_MONOTONIC, ns, number
}

// ran is what the sleeper keeps of one wakeup.
type ran struct {
	latency, cpu int64 // ns, number
}

const (
	clockMonotonic = 1
	timerAbstime   = 1
	prTimerslack   = 29
)

// wakerChild is the waker: SAMPLES PERIOD_MIN PERIOD_MAX DURATION SEED CPU,
// times in ns, DURATION 0 without end, CPU -1 for any.
func wakerChild(args []string) int {
	n, ok := ints(args, 6)
	if !ok || n[0] < 1 || n[1] < 1 || n[2] < n[1] {
		return childFailed("waker: needs SAMPLES PERIOD_MIN PERIOD_MAX DURATION SEED CPU")
	}
	recs := make([]woke, n[0])
	return alone(func() int { return waker(n, recs) })
}

// waker is the waker's only thread.
func waker(n []int64, recs []woke) int {
	if why := pin(n[5]); why != "" {
		return childFailed("waker: " + why)
	}
	// Without this the kernel may delay an ordinary process's timers by 50 us.
	syscall.RawSyscall(syscall.SYS_PRCTL, prTimerslack, 1, 0)
	for i := range recs {
		recs[i].cpu = -1 // touch every page now
	}
	s := schedule{min: n[1], span: n[2] - n[1] + 1, rnd: randomizer(n[4])}
	var b [8]byte
	syscall.Write(4, b[:1])
	if k, _ := syscall.Read(5, b[:1]); k != 1 {
		return 0 // called off
	}
	syscall.SetNonblock(5, true)
	used, skipped := wakeAll(recs, s, n[3])
	end := []int64{skipped, Now()}
	writeAll(4, bytesOf(unsafe.Pointer(&end[0]), 16))
	writeAll(4, bytesOf(unsafe.Pointer(&recs[0]), used*int(unsafe.Sizeof(woke{}))))
	return 0
}

// schedule yields periods spread evenly over [min, min+span).
type schedule struct {
	min, span int64
	rnd       randomizer
}

func (s *schedule) next() int64 {
	v := int64(s.rnd.next())<<20 ^ int64(s.rnd.next())
	return s.min + v%s.span
}

// wakeAll wakes the sleeper until its time is up, the records are full, or
// descriptor 5 is closed. A period that is over before it could be slept to is
// skipped and counted, so that a stall cannot hide itself.
func wakeAll(recs []woke, s schedule, duration int64) (used int, skipped int64) {
	next := Now()
	end := never
	if duration > 0 {
		end = next + duration
	}
	var stamp int64
	var b [1]byte
	for used < len(recs) {
		next += s.next()
		for now := Now(); next <= now; next += s.next() {
			skipped++
		}
		if next > end {
			return used, skipped
		}
		sleepUntil(next)
		stamp = Now()
		syscall.RawSyscall(syscall.SYS_WRITE, 3, uintptr(unsafe.Pointer(&stamp)), 8)
		recs[used] = woke{next, stamp - next, cpuNow()}
		used++
		if n, _, e := syscall.RawSyscall(syscall.SYS_READ, 5, uintptr(unsafe.Pointer(&b)), 1); e == 0 && n == 0 {
			return used, skipped
		}
	}
	return used, skipped
}

func sleepUntil(t int64) {
	ts := syscall.NsecToTimespec(t)
	for {
		_, _, e := syscall.RawSyscall6(nrClockNanosleep(), clockMonotonic, timerAbstime, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if e != syscall.EINTR {
			return
		}
	}
}

// cpuNow is the CPU this thread runs on, -1 where the kernel does not tell.
func cpuNow() int64 {
	var cpu uint32
	if _, _, e := syscall.RawSyscall(nrGetcpu(), uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return -1
	}
	return int64(cpu)
}

// sleeperChild is the other end: SAMPLES CPU.
func sleeperChild(args []string) int {
	n, ok := ints(args, 2)
	if !ok || n[0] < 1 {
		return childFailed("sleeper: needs SAMPLES CPU")
	}
	recs := make([]ran, n[0])
	return alone(func() int { return sleeper(n, recs) })
}

// sleeper is the sleeper's only thread.
func sleeper(n []int64, recs []ran) int {
	if why := pin(n[1]); why != "" {
		return childFailed("sleeper: " + why)
	}
	for i := range recs {
		recs[i].cpu = -1
	}
	used := 0
	var stamp int64
	syscall.Write(4, []byte{0})
	for used < len(recs) {
		k, _, e := syscall.RawSyscall(syscall.SYS_READ, 3, uintptr(unsafe.Pointer(&stamp)), 8)
		now := Now()
		if e == syscall.EINTR {
			continue
		}
		if e != 0 || k != 8 {
			break
		}
		recs[used] = ran{now - stamp, cpuNow()}
		used++
	}
	writeAll(4, bytesOf(unsafe.Pointer(&recs[0]), used*int(unsafe.Sizeof(ran{}))))
	return 0
}

// pin keeps this thread on a CPU; -1 leaves it free.
func pin(cpu int64) (why string) {
	if cpu < 0 {
		return ""
	}
	var set cpuSet
	set[cpu/wordBits] |= 1 << (cpu % wordBits)
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); e != 0 {
		return "cannot be kept on CPU " + itoa(cpu) + ": " + e.Error()
	}
	return ""
}

const wordBits = 8 * int64(unsafe.Sizeof(uintptr(0)))

// cpuSet is the kernel's set of CPUs, an array of longs.
type cpuSet [1024 / wordBits]uintptr

// allowedCPUs lists the CPUs that this process may use.
func allowedCPUs() (cpus []int64) {
	var set cpuSet
	if _, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); e != 0 {
		return nil
	}
	for i := range int64(1024) {
		if set[i/wordBits]&(1<<(i%wordBits)) != 0 {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

func ints(args []string, want int) ([]int64, bool) {
	var n []int64
	for _, a := range args {
		v, err := strconv.ParseInt(a, 10, 64)
		if err != nil {
			return nil, false
		}
		n = append(n, v)
	}
	return n, len(n) == want
}

// bytesOf views memory as bytes; both ends of the pipe are one machine.
func bytesOf(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }
