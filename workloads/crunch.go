package workloads

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kernsweep/workloads/wire"
)

// Crunch runs the agent's float programs: LTMM lives in the first-level cache
// and is bound by arithmetic, LTMB streams through memory and is bound by its
// bandwidth, LTBM walks through memory at random and is bound by its latency.
type Crunch struct {
	Work     int      `hcl:"work,optional" doc:"work units of each task; one is about 1 ms on a 1 GHz CPU with a floating-point unit (default 5000). The target's scale multiplies it"`
	Parallel int      `hcl:"parallel,optional" doc:"1 (default): one task after another; the number of tasks: all at once"`
	Tasks    []string `hcl:"tasks,optional" doc:"which of LTMM, LTMB, LTBM, in this order (default: all)"`
	Size     int      `hcl:"size,optional" doc:"memory of LTMB and of LTBM in kB, the same for all kernels of a target (default 512, which fits a machine with 16 MB; 65536 exceeds the caches of a large one)"`
}

func (c *Crunch) tasks() []string {
	if len(c.Tasks) == 0 {
		return []string{"LTMM", "LTMB", "LTBM"}
	}
	return c.Tasks
}

func (c *Crunch) atOnce() bool { return c.Parallel > 1 }

// Check refuses parameters that make no sense.
func (c *Crunch) Check() error {
	all := (&Crunch{}).tasks()
	for i, t := range c.Tasks {
		if !slices.Contains(all, t) {
			return fmt.Errorf("tasks: %q is none of %s", t, strings.Join(all, ", "))
		}
		if slices.Contains(c.Tasks[:i], t) {
			return fmt.Errorf("tasks: %s is named twice", t)
		}
	}
	if n := len(c.tasks()); c.Parallel != 0 && c.Parallel != 1 && c.Parallel != n {
		return fmt.Errorf("parallel = %d: must be 1 (one after another) or %d (all at once)", c.Parallel, n)
	}
	if c.Work < 0 {
		return fmt.Errorf("work = %d: must be at least 1", c.Work)
	}
	if c.Size != 0 && (c.Size < 64 || c.Size > 1<<20) {
		return fmt.Errorf("size = %d: must be between 64 and %d kB", c.Size, 1<<20)
	}
	return nil
}

// Needs says that only the Go agent has the programs.
func (c *Crunch) Needs() Needs { return Needs{GoAgent: "the float programs are part of the Go agent"} }

// Metrics are user and wall seconds of each task, its share of a CPU, and the
// totals. The sum of walls is a duration only when tasks run one after another.
func (c *Crunch) Metrics() []Metric {
	var ms []Metric
	for _, t := range c.tasks() {
		ms = append(ms,
			Metric{Name: t + ".user", Unit: "s", Better: LowerIsBetter},
			Metric{Name: t + ".wall", Unit: "s", Better: LowerIsBetter},
			Metric{Name: t + ".share", Unit: "%", Better: Informative},
			Metric{Name: t + ".involuntary", Unit: "count", Better: Informative})
	}
	ms = append(ms, Metric{Name: "total.user", Unit: "s", Better: LowerIsBetter})
	if !c.atOnce() {
		ms = append(ms, Metric{Name: "total.wall", Unit: "s", Better: LowerIsBetter})
	}
	return append(ms, Metric{Name: "makespan", Unit: "s", Better: LowerIsBetter, Primary: true})
}

func (c *Crunch) work(scale float64) int {
	w := float64(c.Work)
	if w == 0 {
		w = 5000
	}
	if scale > 0 {
		w *= scale
	}
	return max(1, int(math.Round(w)))
}

// Estimate is for a CPU of 1 GHz, all tasks on one.
func (c *Crunch) Estimate() time.Duration {
	return time.Duration(c.work(1)*len(c.tasks())) * time.Millisecond
}

// Run runs the tasks once.
func (c *Crunch) Run(ctx context.Context, env *Env) error {
	if env.Target.Agent.Kind() != "go" {
		return &UnavailableError{Reason: c.Needs().GoAgent}
	}
	mode := "seq"
	if c.atOnce() {
		mode = "par"
	}
	size := c.Size
	if size == 0 {
		size = 512
	}
	return env.Target.Agent.Run(ctx, Task{
		Argv: []string{"crunch", "-work", strconv.Itoa(c.work(env.Scale)), "-mode", mode,
			"-tasks", strings.Join(c.tasks(), ","), "-size", strconv.Itoa(size)},
		Deadline: env.Deadline, Sample: env.Sample, Dir: env.Dir, Ended: env.Ended,
	})
}

// Parse reads the tasks' times from the spool. It is invalid when the CPUs
// changed or memory was swapped.
func (c *Crunch) Parse(files fs.FS) (Parsed, error) {
	var p Parsed
	s, err := readSpool(files, "spool")
	if s == nil {
		return p, err
	}
	done := map[string]wire.Task{}
	for _, t := range s.Tasks {
		done[t.Name] = t
	}
	for _, m := range c.Metrics() {
		p.Values = append(p.Values, crunchValue(m, c.tasks(), done))
	}
	for _, t := range c.tasks() {
		if v := s.Values[t+".checksum"]["value"]; v != "" {
			p.Notes = append(p.Notes, "checksum of "+t+": "+v)
		}
	}
	p.Warnings = c.coarse(done)
	if err == nil {
		err = steadyCPUs(s)
	}
	return p, err
}

func crunchValue(m Metric, tasks []string, done map[string]wire.Task) Value {
	name, what, _ := strings.Cut(m.Name, ".")
	if slices.Contains(tasks, name) {
		tasks = []string{name}
	} else if what == "" {
		what = name
	}
	var user, wall, switches, begin, end int64 // microseconds, nanoseconds
	for i, n := range tasks {
		t, ok := done[n]
		if !ok || t.Exit != 0 {
			return lack(m, n+" did not end well")
		}
		user, wall, switches = user+t.UserUS, wall+t.EndNS-t.StartNS, switches+t.Involuntary
		if i == 0 {
			begin, end = t.StartNS, t.EndNS
		}
		begin, end = min(begin, t.StartNS), max(end, t.EndNS)
	}
	switch what {
	case "user":
		return have(m, float64(user)/1e6)
	case "wall":
		return have(m, float64(wall)/1e9)
	case "involuntary":
		return have(m, float64(switches))
	case "share":
		if wall <= 0 {
			return lack(m, name+" took no time")
		}
		return have(m, 100*float64(user)*1e3/float64(wall))
	default:
		return have(m, float64(end-begin)/1e9)
	}
}

// seconds is how long a task ran, by the target's monotonic clock.
func seconds(t wire.Task) float64 { return float64(t.EndNS-t.StartNS) / 1e9 }

// tick is the step of user time where the kernel counts clock ticks.
const tick = 0.01

// coarse names tasks too short for the ticks that their user time is counted in.
// Makespans and shares of a CPU are judged by the rules of orchestrator/validity.
func (c *Crunch) coarse(done map[string]wire.Task) (w []string) {
	for _, n := range c.tasks() {
		t, ok := done[n]
		if user := float64(t.UserUS) / 1e6; ok && t.Exit == 0 && user < 50*tick {
			w = append(w, fmt.Sprintf("%s ran only %.2f s, less than 50 clock ticks: its user time is coarse; give it more work", n, user))
		}
	}
	return w
}
