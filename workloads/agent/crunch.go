package agent

import (
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// quietRuntime keeps the Go runtime of a measured process out of the way: no
// collector, no preemption signals, one processor.
func quietRuntime() []string {
	return []string{"GOGC=off", "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1"}
}

// crunchTask runs the float programs, each a process of its own with a task
// record of its name, and gives each one's checksum as a value:
// crunch -work UNITS [-mode seq|par] [-tasks LTMM,LTMB,LTBM] [-size KB]
func crunchTask(j *Job, args []string) error {
	work, mode, tasks, size := "", "seq", strings.Join(kernelNames(), ","), "512"
	rest, err := taskOptions(args, map[string]*string{"-work": &work, "-mode": &mode, "-tasks": &tasks, "-size": &size})
	if err != nil {
		return err
	}
	if len(rest) > 0 || (mode != "seq" && mode != "par") {
		return failure("crunch: -mode must be seq or par, and nothing may follow the options")
	}
	var running []*crunching
	var first error
	for _, name := range strings.Split(tasks, ",") {
		c, err := startCrunch(j, name, work, size)
		if err != nil {
			first = err
			break
		}
		if mode == "par" {
			running = append(running, c)
		} else if first = c.end(j); first != nil {
			break
		}
	}
	for _, c := range running {
		if err := c.end(j); first == nil {
			first = err
		}
	}
	return first
}

// crunching is a started float program.
type crunching struct {
	name string
	p    *Process
	from int // read end of the pipe that its checksum comes through
}

func startCrunch(j *Job, name, work, size string) (*crunching, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, failure("pipe: " + err.Error())
	}
	p, err := j.Start(Proc{Name: name, Self: true, Env: quietRuntime(), Fds: []int{fds[1]},
		Argv: []string{"crunch", name, work, size, "3"}})
	syscall.Close(fds[1])
	if err != nil {
		syscall.Close(fds[0])
		return nil, err
	}
	return &crunching{name: name, p: p, from: fds[0]}, nil
}

// end waits for the program and hands on its checksum.
func (c *crunching) end(j *Job) error {
	t := c.p.Wait()
	sum := make([]byte, 64)
	n, _ := syscall.Read(c.from, sum) // the writer is gone: this returns at once
	syscall.Close(c.from)
	if err := Failed(t); err != nil {
		return err
	}
	if n > 0 {
		j.Value(c.name+".checksum", string(sum[:n]), "")
	}
	return nil
}

// crunchChild computes: crunch NAME UNITS KB [FD]. It writes the checksum of all
// its work to descriptor FD.
func crunchChild(args []string) int {
	if len(args) != 3 && len(args) != 4 {
		return childFailed("crunch: needs NAME UNITS KB [FD]")
	}
	units, err := strconv.ParseInt(args[1], 10, 64)
	kb, err2 := strconv.Atoi(args[2])
	if err != nil || err2 != nil || units < 1 || kb < minKB || kb > maxKB {
		return childFailed("crunch: units must be at least 1, and the size between " + itoa(minKB) + " and " + itoa(maxKB) + " kB")
	}
	k := newKernel(args[0], kb)
	if k == nil {
		return childFailed("crunch: there is no program " + args[0])
	}
	fd := -1
	if len(args) == 4 {
		if fd, err = strconv.Atoi(args[3]); err != nil {
			return childFailed("crunch: descriptor " + args[3] + ": " + err.Error())
		}
	}
	return alone(func() int {
		sum, ok := crunch(k, units)
		if !ok {
			return childFailed("crunch: " + args[0] + " got two results for the same work: memory or floating point is faulty")
		}
		if fd >= 0 {
			if _, err := syscall.Write(fd, []byte(strconv.FormatUint(sum, 10))); err != nil {
				return childFailed("crunch: descriptor " + args[3] + ": " + err.Error())
			}
		}
		return 0
	})
}

// childFailed says why a child gives up, and is its exit status.
func childFailed(why string) int {
	writeAll(2, []byte(why+"\n"))
	return 1
}

// crunch does units of work, folds their results into a checksum, and compares
// each round over the data with the first one.
func crunch(k kernel, units int64) (sum uint64, ok bool) {
	period := k.period()
	var first, round uint64
	for i := range units {
		v := k.unit()
		bits := *(*uint64)(unsafe.Pointer(&v)) // math.Float64bits, without the package
		round = (round ^ bits) * 0x100000001b3
		if (i+1)%period != 0 {
			continue
		}
		if first == 0 {
			first = round
		}
		if round != first {
			return 0, false
		}
		sum, round = (sum^round)*0x100000001b3, 0
	}
	return sum ^ round, true
}

// taskOptions reads options with one value each and returns what follows them.
func taskOptions(args []string, known map[string]*string) (rest []string, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		to := known[args[0]]
		if to == nil {
			return nil, failure("unknown option " + args[0])
		}
		if len(args) < 2 {
			return nil, failure("option " + args[0] + " needs a value")
		}
		*to = args[1]
		args = args[2:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return args, nil
}
