package agent

import (
	"strconv"
	"strings"
	"time"
)

// runFlags are those of `run`.
type runFlags struct {
	spool     string
	sample    time.Duration // 0: begin and end only
	deadline  time.Duration // 0: none
	stopAfter time.Duration // 0: none
	cap       int64         // bytes kept of each output stream
	limit     int64         // bytes of the whole spool
	endOnCap  bool
	listen    int
	udp       bool

	owner      int      // pid of a process of this machine whose end makes the task useless; 0: none
	ownerStart string   // its start time
	keep       bool     // leave the spool on disk
	env        []string // KEY=value, added to the environment
	task       []string
}

// Defaults of `run`. A spool lies in memory on most targets.
const (
	defaultCap   = 1 << 20
	defaultLimit = 16 << 20
)

const runUsage = `usage: agent run [-spool FILE] [-sample D] [-deadline D] [-stop-after D] [-cap BYTES]
       [-limit BYTES] [-overflow drain|end] [-listen PORT [-udp]] [-keep]
       [-owner PID-START]
       [-env KEY=VALUE]… TASK…
`

// parseRun reads the flags of `run`; package flag would pull in reflect.
func parseRun(args []string) (runFlags, error) {
	o := runFlags{cap: defaultCap, limit: defaultLimit}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := args[0]
		if name == "-udp" || name == "-keep" {
			o.udp = o.udp || name == "-udp"
			o.keep = o.keep || name == "-keep"
			args = args[1:]
			continue
		}
		if len(args) < 2 {
			return o, failure(name + " needs a value\n" + runUsage)
		}
		if err := o.set(name, args[1]); err != nil {
			return o, failure(name + " " + args[1] + ": " + err.Error() + "\n" + runUsage)
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return o, failure("no task given\n" + runUsage)
	}
	o.task = args
	return o, nil
}

func (o *runFlags) set(name, v string) (err error) {
	switch name {
	case "-spool":
		o.spool = v
	case "-sample":
		o.sample, err = positive(v)
	case "-deadline":
		o.deadline, err = positive(v)
	case "-stop-after":
		o.stopAfter, err = positive(v)
	case "-cap":
		o.cap, err = strconv.ParseInt(v, 10, 64)
	case "-limit":
		o.limit, err = strconv.ParseInt(v, 10, 64)
	case "-listen":
		o.listen, err = strconv.Atoi(v)
	case "-owner":
		pid, start, _ := strings.Cut(v, "-")
		o.ownerStart = start
		o.owner, err = strconv.Atoi(pid)
	case "-env":
		if !strings.Contains(v, "=") {
			return failure("must be KEY=VALUE")
		}
		o.env = append(o.env, v)
	case "-overflow":
		if v != "drain" && v != "end" {
			return failure("must be drain or end")
		}
		o.endOnCap = v == "end"
	default:
		return failure("unknown flag")
	}
	if err == nil && (o.cap < 0 || o.limit < 0 || o.listen < 0 || o.listen > 65535) {
		return failure("out of range")
	}
	return err
}

func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		return 0, failure("must not be negative")
	}
	return d, err
}
