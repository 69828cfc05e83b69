package agent

import (
	"syscall"

	"kernsweep/workloads/wire"
)

// Task is the body of one built-in task. It runs on a goroutine of its own
// while the agent samples; args are the words after the task's name. What it
// measures in the agent's own process is disturbed by the sampler, so work that
// is measured belongs in a process started by Job.Start. It must return soon
// after Job.Done is closed. An error becomes status=failed with its text.
type Task func(j *Job, args []string) error

// Child is code that runs in a process of its own, a re-executed agent; args
// are the words after its name. It returns the exit status. What it writes to
// stdout and stderr is spooled like any task's.
type Child func(args []string) int

// task finds a task by name, nil when there is none. A new task is one line
// here and one file.
func task(name string) Task {
	switch name {
	case "exec":
		return execTask
	case "crunch":
		return crunchTask
	case "latency":
		return latencyTask
	case "stream":
		return streamTask
	}
	return nil
}

// child finds the code of a re-executed agent by name, nil when there is none.
func child(name string) Child {
	switch name {
	case "crunch":
		return crunchChild
	case "session":
		return sessionChild
	case "sleeper":
		return sleeperChild
	case "streamclient":
		return streamClientChild
	case "streamserver":
		return streamServerChild
	case "waker":
		return wakerChild
	case "true": // the self-test's
		return func([]string) int { return 0 }
	}
	return nil
}

// Proc describes a process of a task.
type Proc struct {
	Name string   // of its task record; "" = the base name of Argv[0]
	Argv []string // looked up in PATH; with Self, a Child's name and its arguments
	Self bool     // run this agent again, as a Child
	Env  []string // KEY=value, added to the agent's own environment
	Fds  []int    // become descriptors 3, 4, … of the process; close yours after Start
}

// execTask runs one command: exec -- ARGV…
func execTask(j *Job, args []string) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return failure("exec: no command given (write: exec -- COMMAND ARGUMENTS)")
	}
	p, err := j.Start(Proc{Name: "exec", Argv: args})
	if err != nil {
		return err
	}
	return Failed(p.Wait())
}

// Failed returns why t counts as a failure, or nil: it exited with 0, or the
// agent itself ended it.
func Failed(t wire.Task) error {
	switch {
	case t.TimedOut || t.Stopped:
		return nil // the agent's own end record says so
	case t.Signal != 0:
		return failure(t.Name + ": killed by signal " + itoa(int64(t.Signal)) + signalWords(syscall.Signal(t.Signal)))
	case t.Exit != 0:
		return failure(t.Name + ": exited with status " + itoa(int64(t.Exit)))
	}
	return nil
}

func signalWords(s syscall.Signal) string {
	switch s {
	case syscall.SIGKILL:
		return " (KILL: by hand, or the kernel ran out of memory; look for \"Out of memory\" in dmesg)"
	case syscall.SIGILL:
		return " (illegal instruction: built for another CPU or for a floating-point unit that is not there)"
	case syscall.SIGSEGV:
		return " (segmentation fault)"
	}
	return ""
}
