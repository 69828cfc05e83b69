// Package wire is the agent's spool format, written on the target and read by
// the controller. It is imported by the agent, so it keeps to law 2: no fmt, no
// reflect, nothing that pulls them in.
//
// A spool is the line "kernsweep-spool 1" and then records:
//
//	TYPE MONO_NS LENGTH[ NAME]\n
//	LENGTH bytes\n
//
// MONO_NS is the target's CLOCK_MONOTONIC (the shell agent: /proc/uptime). A
// spool without an "end" record is torn: the agent, or its machine, died.
package wire

import "strings"

// Magic is the first line of a spool.
const Magic = "kernsweep-spool 1\n"

// Lines that an agent prints before a spool: its task owns its port; its task is
// over, and how ("ended timeout: still running after 30s").
const (
	Ready = "ready\n"
	Ended = "ended "
)

// Words that the controller looks for: what collect says on stderr of a spool
// that is not there, and of a run that goes on; and how the reason begins of a
// task that was ended since nobody would ever ask for it.
const (
	NoSpool  = "no spool of a run"
	GoesOn   = "the run goes on"
	Orphaned = "the kernsweep that began it is gone"
)

// Resumable is a word of the self-test's line of an agent that knows the flags
// -owner and -within, and marks its tasks: a run may use one older than this.
const Resumable = "resumable"

// TaskVariable is in the environment of every process of a task. Its value ends
// the name of the task's spool, so that what has left the task's process group
// is still found.
const TaskVariable = "KERNSWEEP_TASK"

// TaskOf is the value of TaskVariable for a spool: what stands between the last
// "-" of its path and its ending.
func TaskOf(spool string) string {
	spool = strings.TrimSuffix(spool, ".spool")
	return spool[strings.LastIndexByte(spool, '-')+1:]
}

// Record types. Bodies of begin, task, value and end are "key=value" lines.
const (
	TypeBegin  = "begin"  // pid, start (field 22 of /proc/pid/stat), wall (Unix ns, of the moment MONO_NS), argv, agent
	TypeStat   = "stat"   // raw lines of /proc/stat, per-interrupt counts cut off
	TypeVMStat = "vmstat" // pgpgin, pgpgout, pswpin, pswpout lines of /proc/vmstat
	TypeMem    = "mem"    // MemTotal, MemFree, MemAvailable, Buffers, Cached, SReclaimable, Swap* lines of /proc/meminfo
	TypeLoad   = "load"   // /proc/loadavg
	TypeFreq   = "freq"   // lines "cpuN kHz" of a few CPUs: scaling_cur_freq, where the kernel keeps no time_in_state
	TypeState  = "state"  // before and after the task: PATH=CONTENT of small files, their line ends ";"; see Spool.States
	TypeOut    = "out"    // bytes of the task's stdout, in order
	TypeErr    = "err"    // bytes of its stderr, in order
	TypeTask   = "task"   // NAME; one process that ended: pid, exit or signal, start_ns, end_ns, utime_us, stime_us, nvcsw, nivcsw, maxrss_kb, timeout=1, stopped=1
	TypePoints = "points" // NAME; lines of whitespace-separated integers, a series
	TypeValue  = "value"  // NAME; value=<decimal> unit=<unit>, one per line
	TypeNote   = "note"   // free text: "stdout truncated at 1048576 bytes"
	TypeEnd    = "end"    // status=ok|failed|timeout|stopped, reason, rss_kb, cpu_us (of the agent itself), wall (Unix ns, of the moment MONO_NS)
)

// Record is one record of a spool.
type Record struct {
	Type   string
	MonoNS int64
	Name   string
	Body   []byte
}

// Task is a process that the agent ran to its end.
type Task struct {
	Name              string
	PID               int
	Exit              int // -1 when killed
	Signal            int // 0 when it exited
	StartNS, EndNS    int64
	UserUS, SystemUS  int64
	Voluntary         int64 // context switches, ru_nvcsw
	Involuntary       int64 // ru_nivcsw
	MaxRSSKB          int64
	TimedOut, Stopped bool
	// Missing names the figures that the agent could not have ("utime_us",
	// "nvcsw", …); their fields are 0 and mean nothing.
	Missing []string
}

// Snapshot is the raw counters of one moment.
type Snapshot struct {
	MonoNS                  int64
	Stat, VMStat, Mem, Load []byte // nil when that file could not be read
	Freq                    []byte // nil without frequencies to sample
}

// State is what was read of /proc and /sys before the task, or after it. Files
// maps the path of each that could be read to its content: /proc/schedstat, and
// each CPU's cpufreq and thermal_throttle.
type State struct {
	MonoNS int64
	Files  map[string]string
}

// Spool is a whole spool, read.
type Spool struct {
	Begin     map[string]string
	BeginNS   int64             // MonoNS of the begin record
	End       map[string]string // nil: torn
	EndNS     int64             // MonoNS of the end record
	Tasks     []Task
	Snapshots []Snapshot
	States    []State // two; agents of earlier versions, and one that died, left fewer
	Points    map[string][][]int64
	Values    map[string]map[string]string
	Notes     []string
	Stdout    []byte
	Stderr    []byte
}
