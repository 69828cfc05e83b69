package workloads

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"testing"
	"time"
)

// copy.go

// Copy measures how long dd needs to move zeros from one buffer to another.
type Copy struct {
	Blocks int `hcl:"blocks,optional" doc:"blocks of 64 KiB (default 10000)"`
}

func (w *Copy) Check() error {
	if w.Blocks < 0 {
		return fmt.Errorf("blocks = %d: must not be negative", w.Blocks)
	}
	return nil
}

func (w *Copy) Needs() Needs            { return Needs{} } // no peer, and the shell agent will do
func (w *Copy) Estimate() time.Duration { return 10 * time.Second }
func (w *Copy) Metrics() []Metric {
	return []Metric{{Name: "elapsed", Unit: "s", Better: LowerIsBetter, Primary: true}}
}

func (w *Copy) Run(ctx context.Context, env *Env) error {
	count := strconv.Itoa(cmp.Or(w.Blocks, 10000))
	return env.Target.Agent.Run(ctx, Task{
		Argv:     []string{"exec", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=65536", "count=" + count},
		Deadline: env.Deadline, Sample: env.Sample, Dir: env.Dir, Ended: env.Ended,
	})
}

func (w *Copy) Parse(files fs.FS) (Parsed, error) {
	spool, err := readSpool(files, "spool") // a failed or killed dd is an error here
	if err != nil {
		return Parsed{}, err
	}
	dd := spool.Tasks[0]
	return Parsed{Values: []Value{have(w.Metrics()[0], float64(dd.EndNS-dd.StartNS)/1e9)}}, nil
}

// end of copy.go

func ExampleWorkload() {
	var w Workload = &Copy{Blocks: -1}
	fmt.Println(w.Check())
	// Output: blocks = -1: must not be negative
}

func TestExampleRuns(t *testing.T) {
	got, err := trial(t, buildAgent(t), &Copy{Blocks: 100})
	if err != nil {
		t.Fatal(err)
	}
	if v := valueOf(t, got, "elapsed"); v.Value <= 0 || v.Value > 30 {
		t.Errorf("%+v", v)
	}
}
