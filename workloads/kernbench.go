package workloads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Kernbench builds a source tree on the target with a number of jobs that
// depends on its CPUs. Every build starts from a clean tree; a build that fails
// is a failed trial. Levels are scenarios, and their runs are never mixed.
type Kernbench struct {
	Source  string   `hcl:"source,optional" doc:"directory of the source tree on the target"`
	Archive string   `hcl:"archive,optional,path" doc:"tar file on the controller, unpacked on the target once a boot, instead of source"`
	Level   string   `hcl:"level,optional" doc:"\"single\": 1 job; \"half\": one for every two CPUs; \"optimal\" (default): one for each; \"maximal\": no limit"`
	Jobs    int      `hcl:"jobs,optional" doc:"number of jobs, instead of the level's"`
	Goals   []string `hcl:"goals,optional" doc:"make goals (default: the tree's own)"`
	Config  []string `hcl:"config,optional" doc:"command that configures the tree once a boot, run in the source directory; {build} becomes the build directory, as in [\"make\", \"O={build}\", \"defconfig\"]"`
	InTree  bool     `hcl:"in_tree,optional" doc:"build inside the source tree, for trees that know no O="`
	Dir     string   `hcl:"dir,optional" doc:"directory on the target to build in; it should be in memory (default /dev/shm, else /tmp)"`
	// Duration is how long one build takes, about.
	Duration time.Duration `hcl:"duration,optional" doc:"how long one build is expected to take (default 5m), for estimates and the deadline"`
}

// Levels of kernbench 0.50.
const (
	levelSingle  = "single"
	levelHalf    = "half"
	levelOptimal = "optimal"
	levelMaximal = "maximal"
)

func (k *Kernbench) level() string {
	if k.Level == "" {
		return levelOptimal
	}
	return k.Level
}

// Check refuses parameters that make no sense.
func (k *Kernbench) Check() error {
	switch {
	case (k.Source == "") == (k.Archive == ""):
		return errors.New("give either source (on the target) or archive (on the controller)")
	case k.Source != "" && !strings.HasPrefix(k.Source, "/"):
		return fmt.Errorf("source = %q: must be an absolute path", k.Source)
	case k.Dir != "" && !strings.HasPrefix(k.Dir, "/"):
		return fmt.Errorf("dir = %q: must be an absolute path", k.Dir)
	case !oneOf(k.level(), "single half optimal maximal"):
		return fmt.Errorf("level = %q: must be one of: single, half, optimal, maximal", k.Level)
	case k.Jobs < 0:
		return fmt.Errorf("jobs = %d: must be at least 1", k.Jobs)
	case k.Jobs > 0 && k.Level != "":
		return errors.New("both level and jobs are given: take one away")
	}
	for _, g := range k.Goals {
		if g == "" || strings.HasPrefix(g, "-j") {
			return fmt.Errorf("goals: %q is no goal (the level decides about -j)", g)
		}
	}
	if k.Duration < 0 {
		return fmt.Errorf("duration = %v: must not be negative", k.Duration)
	}
	return nil
}

// Needs says that any agent will do.
func (k *Kernbench) Needs() Needs { return Needs{} }

// Metrics are kernbench's six. ctx counts involuntary context switches, sleeps
// voluntary ones, of make and all its descendants.
func (k *Kernbench) Metrics() []Metric {
	return []Metric{
		{Name: "elapsed", Unit: "s", Better: LowerIsBetter, Primary: true},
		{Name: "user", Unit: "s", Better: LowerIsBetter},
		{Name: "system", Unit: "s", Better: LowerIsBetter},
		{Name: "percent", Unit: "%", Better: Informative},
		{Name: "ctx", Unit: "count", Better: Informative},
		{Name: "sleeps", Unit: "count", Better: Informative},
	}
}

// Estimate is the configured duration.
func (k *Kernbench) Estimate() time.Duration {
	if k.Duration == 0 {
		return 5 * time.Minute
	}
	return k.Duration
}

// jobs is the -j argument for a number of CPUs.
func (k *Kernbench) jobs(cpus int) (string, error) {
	switch {
	case k.Jobs > 0:
		return "-j" + strconv.Itoa(k.Jobs), nil
	case k.level() == levelSingle:
		return "-j1", nil
	case k.level() == levelMaximal:
		return "-j", nil
	case cpus < 1:
		return "", &UnavailableError{Reason: "the number of CPUs is unknown"}
	case k.level() == levelHalf && cpus/2 < 2:
		return "", &UnavailableError{Reason: fmt.Sprintf("half load is no more than a single job with so few CPUs (%d)", cpus)}
	case k.level() == levelHalf:
		return "-j" + strconv.Itoa(cpus/2), nil
	default:
		return "-j" + strconv.Itoa(cpus), nil
	}
}

// kernbenchEnv makes builds the same on every kernel and every day.
func kernbenchEnv() []string {
	return []string{"LC_ALL=C", "CCACHE_DISABLE=1", "KBUILD_BUILD_TIMESTAMP=2000-01-01", "KBUILD_BUILD_USER=kernsweep", "KBUILD_BUILD_HOST=kernsweep"}
}

// makeScript runs make with a log of its own, so that nothing passes the agent
// while it is measured: LOG, then make's arguments.
const makeScript = `log=$1; shift; unset MAKEFLAGS MFLAGS MAKELEVEL; exec make "$@" >"$log" 2>&1`

// cleanScript is the same with what must be on disk before the measurement.
const cleanScript = `log=$1; shift; unset MAKEFLAGS MFLAGS MAKELEVEL; make "$@" >"$log" 2>&1 && sync`

// Run cleans the tree and builds it once.
func (k *Kernbench) Run(ctx context.Context, env *Env) error {
	jobs, err := k.jobs(env.CPUs)
	if err != nil {
		return err
	}
	p, err := k.place(ctx, env)
	if err != nil {
		return err
	}
	if err := k.clean(ctx, p, env.Dir); err != nil {
		return err
	}
	argv := append([]string{"exec", "--", "sh", "-c", makeScript, "sh", p.log}, k.makeArgs(p, jobs)...)
	err = env.Target.Agent.Run(ctx, Task{Argv: append(argv, k.Goals...), Env: kernbenchEnv(),
		Deadline: env.Deadline, Sample: env.Sample, Dir: env.Dir, Ended: env.Ended})
	if err != nil {
		return err
	}
	return p.fetch(ctx, env.Dir)
}

// cleaned is there once the tree was clean: a trial that is taken up again must
// not clean what its build has made since.
const cleaned = "cleaned"

func (k *Kernbench) clean(ctx context.Context, p *kernbenchPlace, dir string) error {
	mark := filepath.Join(dir, cleaned)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	argv := append([]string{"sh", "-c", cleanScript, "sh", p.log}, k.makeArgs(p, "clean")...)
	if err := p.run(ctx, "make clean", argv...); err != nil {
		return p.explain(ctx, err)
	}
	return os.WriteFile(mark, []byte("make clean in "+p.build+"\n"), 0o644)
}

func (k *Kernbench) makeArgs(p *kernbenchPlace, more ...string) []string {
	args := []string{"-C", p.source}
	if !k.InTree {
		args = append(args, "O="+p.build)
	}
	return append(args, more...)
}
